package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/group"
)

const (
	// mostParts is how many callers share a transaction, and so a wait for the disk, and mostItems how many items they may bring
	// together: the first of them waits for the last.
	mostParts = 32
	mostItems = 256
	// mostWaiting bounds the callers that wait for the writer.
	mostWaiting = 16384
)

// part is what one caller writes. One that is shared may run again, after what it wrote was undone.
type part struct {
	ctx   context.Context
	doing string
	act   func(*tx) error
}

// writers are the one writer of the file and those who wait for it.
type writers = group.Group[*part, *part, struct{}]

func (s *Store) newWriters() *writers {
	config := group.Config{Writers: 1, Most: mostParts, Bytes: mostItems, Waiting: mostWaiting, Stays: true}
	return group.New[*part](config, s.commitParts)
}

// writeTx runs act in an immediate transaction of its own once this caller's turn has come. From there on the context is not
// asked any more.
func (s *Store) writeTx(ctx context.Context, doing string, act func(*tx) error) error {
	return s.await(ctx, "", mostItems, &part{ctx: ctx, doing: doing, act: act})
}

// shareTx is writeTx for what is written often: it shares the transaction with others of its kind that wait. An error undoes
// its own part alone. Act begins anew each time it runs.
func (s *Store) shareTx(ctx context.Context, tenant turns.Tenant, items int, doing string, act func(*tx) error) error {
	return s.await(ctx, tenant, items, &part{ctx: ctx, doing: doing, act: act})
}

func (s *Store) await(ctx context.Context, tenant turns.Tenant, items int, p *part) error {
	_, err := s.writers.Do(ctx, group.Place[*part]{Tenant: string(tenant), Key: p, Size: items}, p)
	if errors.Is(err, group.ErrFull) {
		return turns.Unavailable(err)
	}
	if errors.As(err, new(group.NotTaken)) {
		return s.mapError(ctx, p.doing, err)
	}
	return err
}

// commitParts writes parts and answers each.
func (s *Store) commitParts(ctx context.Context, parts []*part, answer func(i int, _ struct{}, err error)) {
	session, err := s.write.take(ctx)
	if err != nil {
		for i, p := range parts {
			answer(i, struct{}{}, s.mapError(ctx, p.doing, err))
		}
		return
	}
	defer s.write.give(session)
	for i, err := range commitTogether(session, parts) {
		answer(i, struct{}{}, s.mapError(context.WithoutCancel(parts[i].ctx), parts[i].doing, err))
	}
}

// commitTogether gives an error for each part. Where nothing was written since the parts do not go together, as when one
// names a row that is not there, which shows at the commit, each is written by itself. A transaction that could not begin is no
// part's fault: by itself each would wait as long for whoever holds the file.
func commitTogether(session *session, parts []*part) []error {
	errs := make([]error, len(parts))
	if len(parts) > 1 {
		t := &tx{session: session}
		begun, err := t.together(parts, errs)
		if err == nil {
			return errs
		}
		if !begun || errors.Is(err, turns.ErrUnknownOutcome) {
			for i := range errs {
				if errs[i] == nil {
					errs[i] = err
				}
			}
			return errs
		}
	}
	for i, p := range parts {
		t := &tx{ctx: context.WithoutCancel(p.ctx), session: session}
		errs[i] = t.commit(p.act)
	}
	return errs
}

// together writes parts in one transaction, each behind a savepoint. Its own error is of all: none of them is written, unless
// that is unknown.
func (t *tx) together(parts []*part, errs []error) (begun bool, err error) {
	t.ctx = context.WithoutCancel(parts[0].ctx)
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	for i, p := range parts {
		t.ctx, t.now = context.WithoutCancel(p.ctx), time.Now().UnixMicro()
		var undone error
		if errs[i], undone = t.apart(p.act); undone != nil {
			return true, errors.Join(undone, t.rollback())
		}
	}
	return true, t.finish()
}

// apart undoes what act has written if it fails. The engine may have ended the whole transaction over that: then undone says so.
func (t *tx) apart(act func(*tx) error) (failed, undone error) {
	if _, err := t.exec("SAVEPOINT shared"); err != nil {
		return nil, err
	}
	if failed = act(t); failed != nil {
		if _, err := t.exec("ROLLBACK TO shared"); err != nil {
			return failed, err
		}
	}
	_, undone = t.exec("RELEASE shared")
	return failed, undone
}

// tenantOf is whose the items of a slice are, as far as its first one says.
func tenantOf[T any](items []T, of func(*T) turns.Tenant) turns.Tenant {
	if len(items) == 0 {
		return ""
	}
	return of(&items[0])
}
