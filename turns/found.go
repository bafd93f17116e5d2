package turns

import "time"

// found gathers the answer of a held reply: it must begin with what is stored of it.
type found struct {
	*pen
	log *repeatLog
}

// newFound begins with what a held reply holds.
func newFound(row Reply, max int) (*found, error) {
	log, err := heldLog(row.Content)
	if err != nil {
		return nil, err
	}
	return &found{pen: &pen{log: log, max: max}, log: log}, nil
}

// heldLog is a log that holds what is stored of a reply, and in which what comes must repeat that first.
func heldLog(stored []Piece) (*repeatLog, error) {
	log := newRepeatLog(&foundLog{}, stored)
	log.begin()
	for _, p := range stored {
		if err := log.LiveLog.Append(p); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// take adds one delta.
func (f *found) take(c *callResult, delta Delta) error {
	if c.hears(delta) {
		return nil
	}
	return f.put(delta)
}

// whole is the log, if the answer repeated all that was stored.
func (f *found) whole() ([]Piece, uint32, error) {
	if err := f.end(); err != nil {
		return nil, 0, err
	}
	if f.log.behind() {
		return nil, 0, errDiverged
	}
	pieces, length := f.log.Tail(0)
	return pieces, length, nil
}

// foundLog is a log that nobody follows.
type foundLog struct{ log Log }

func (l *foundLog) Append(p Piece) error      { return l.log.Append(p) }
func (l *foundLog) Len() uint32               { return l.log.Len() }
func (l *foundLog) HasContent() bool          { return l.log.HasContent() }
func (l *foundLog) First() uint32             { return 0 }
func (l *foundLog) Stored(uint32)             {}
func (l *foundLog) Renewed(int64)             {}
func (l *foundLog) End(Reply)                 {}
func (l *foundLog) Stall(error)               {}
func (l *foundLog) Move()                     {}
func (l *foundLog) Watched() (int, time.Time) { return 0, time.Time{} }

func (l *foundLog) Tail(from uint32) ([]Piece, uint32) {
	pieces, _, err := l.log.From(from, 0)
	if err != nil {
		return nil, l.log.Len()
	}
	return pieces, l.log.Len()
}
