package turns

import (
	"context"
	"reflect"
)

// A reply is made from three layers of options: a regenerate's changes, the turn's own, and the conversation's defaults. It
// stores the first and the version of the last, so that however long a system text is, it is stored once. A further attempt
// of a generation, on whatever worker, uses the layers of the one before it: a change of the defaults in between does not make
// another request of it.

// options are what the attempt is made with.
func (a *arrival) options(ctx context.Context, st Standing) (Options, error) {
	switch {
	case a.regenerate != nil:
		return a.regenerate.Options.Or(a.Input.Options).Or(st.Defaults), nil
	case st.Newest != nil:
		return a.pinnedOptions(ctx, a.key, *st.Newest, a.Input.Options, st.defaults())
	}
	return a.Input.Options.Or(st.Defaults), nil
}

// ownOptions are the layers that the attempt's reply stores.
func (a *arrival) ownOptions(st Standing) (Options, int32) {
	switch {
	case a.regenerate != nil:
		return a.regenerate.Options, st.defaults().version
	case st.Newest != nil:
		return st.Newest.Options, st.Newest.DefaultsVersion
	}
	return Options{}, st.defaults().version
}

// defaults are a version of a conversation's defaults.
type defaults struct {
	version int32
	options Options
}

// defaults are the current ones. A conversation that is about to be made has those of version 1, which set nothing.
func (st Standing) defaults() defaults { return defaults{max(st.DefaultsVersion, 1), st.Defaults} }

// pinnedOptions are what a reply's request was built with; asked are the turn's own, and current the conversation's
// defaults, which are read where the reply was made with others.
func (s *Service) pinnedOptions(ctx context.Context, key ConversationKey, r Reply, asked Options, current defaults) (pinned Options, err error) {
	switch {
	case r.DefaultsVersion != 0:
		if current.version != r.DefaultsVersion {
			if current.options, err = s.store.ReadDefaults(ctx, key, r.DefaultsVersion); err != nil {
				return Options{}, err
			}
		}
		pinned = r.Options.Or(asked).Or(current.options)
	case reflect.ValueOf(r.Options).IsZero():
		pinned = asked
	default:
		pinned = r.Options // it stored all of them
	}
	pinned.Model = r.Model
	return pinned, nil
}

// options are what the run's requests are built with.
func (r *run) options() Options {
	made := r.made
	made.Model = r.reply.Model
	return made
}

// keepOptions has a reply whose row was lost store all that it was made with, if the defaults that it names were lost too.
func (r *run) keepOptions(n *NewReply, st Standing) {
	if n.DefaultsVersion > st.DefaultsVersion && !reflect.ValueOf(r.made).IsZero() {
		n.Options, n.DefaultsVersion = r.options(), 0
	}
}
