package turns

import (
	"context"
	"reflect"
)

// A reply is made from three layers of options: a regenerate's changes, the turn's own, and the conversation's defaults. It
// stores the first and the version of the last, so that however long a system text is, it is stored once. A further attempt
// of a generation, on whatever worker, uses the layers of the one before it: a change of the defaults in between does not make
// another request of it.

// layers are what an attempt is made with: the options in force, and the defaults that they were filled up from at last.
type layers struct {
	options  Options
	defaults Options
	version  int32
}

// layers are those of the attempt.
func (a *arrival) layers(ctx context.Context, st Standing) (layers, error) {
	current := layers{defaults: st.Defaults, version: max(st.DefaultsVersion, 1)} // a conversation begins at 1
	switch {
	case a.regenerate != nil:
		current.options = a.regenerate.Options.Or(a.Input.Options).Or(st.Defaults)
		return current, nil
	case st.Newest != nil:
		return a.pinnedLayers(ctx, a.key, *st.Newest, a.Input.Options, current)
	}
	current.options = a.Input.Options.Or(st.Defaults)
	return current, nil
}

// ownOptions are the layer that the attempt's reply stores.
func (a *arrival) ownOptions(st Standing) Options {
	switch {
	case a.regenerate != nil:
		return a.regenerate.Options
	case st.Newest != nil:
		return st.Newest.Options
	}
	return Options{}
}

// pinnedLayers are what a reply's request was built with; asked are the turn's own options. Current holds the
// conversation's defaults; where the reply was made with others those are read.
func (s *Service) pinnedLayers(ctx context.Context, key ConversationKey, r Reply, asked Options, current layers) (l layers, err error) {
	l.version = r.DefaultsVersion
	switch l.version {
	case 0:
	case current.version:
		l.defaults = current.defaults
	default:
		if l.defaults, err = s.store.ReadDefaults(ctx, key, l.version); err != nil {
			return layers{}, err
		}
	}
	l.options = r.options(asked, l.defaults)
	l.options.Model = r.Model
	return l, nil
}

// options are what the reply's request was built with, where asked are its turn's own and defaults those of its version.
// Without a version it stored all of them, if they were not those of the turn.
func (r *Reply) options(asked, defaults Options) Options {
	switch {
	case r.DefaultsVersion != 0:
		return r.Options.Or(asked).Or(defaults)
	case reflect.ValueOf(r.Options).IsZero():
		return asked
	}
	return r.Options
}

// question asks for a request of the run's own generation, by a route.
func (r *run) question(route Route) Question {
	q := Question{Origin: r.origin(), Turn: r.userTurn(), Pinned: r.claim.Reply.WindowStart, Route: route}
	r.made.ask(&q)
	q.Options.Model = r.reply.Model
	return q
}

// ask has a question ask with these options.
func (l layers) ask(q *Question) {
	q.Options, q.Defaults, q.DefaultsVersion = l.options, l.defaults, l.version
}

// keepOptions has a reply whose row was lost store all that it was made with, if the defaults that it names were lost too.
func (r *run) keepOptions(n *NewReply, st Standing) {
	if n.DefaultsVersion > st.DefaultsVersion && !reflect.ValueOf(r.made).IsZero() {
		n.Options, n.DefaultsVersion = r.made.options, 0
		n.Options.Model = r.reply.Model
	}
}
