package archive

import "github.com/turnd/turnd/turns"

// tree is how the rows of one conversation hang below each other. A turn that waited in line has the number of its arrival,
// and hangs below a reply that was made later, so a parent may come after its children.
type tree struct {
	rows map[turns.RowID]place
	// early are the rows that came before their parents, in the order of the file.
	early []turns.RowID
}

// place is what is kept of a row.
type place struct {
	parent turns.RowID
	line   int32
	user   bool
	// rooted says that the way up from it is known to end at a root.
	rooted bool
}

func newTree() tree { return tree{rows: map[turns.RowID]place{}} }

func (t *tree) add(line int, r *turns.ArchivedRow) {
	_, known := t.rows[r.Parent]
	if !r.Parent.IsZero() && !known {
		t.early = append(t.early, r.ID)
	}
	t.rows[r.ID] = place{parent: r.Parent, line: int32(line), user: r.Role == turns.RoleUser}
}

func (t *tree) has(id turns.RowID) bool {
	_, found := t.rows[id]
	return found
}

// isTurn reports whether a row is there and is a user turn.
func (t *tree) isTurn(id turns.RowID) bool { return t.rows[id].user }

// check finds parents that never came and rows that are above themselves. It looks at each row once: a cycle has a row that
// came before its parent.
func (t *tree) check() error {
	for _, id := range t.early {
		at := problems{line: int(t.rows[id].line)}
		at.demand("parent_id", t.has(t.rows[id].parent), "is no row of this conversation")
		if err := at.err(); err != nil {
			return err
		}
	}
	for _, id := range t.early {
		at := problems{line: int(t.rows[id].line)}
		at.demand("parent_id", t.rooted(id), "leads back to this row: its parents go in a circle")
		if err := at.err(); err != nil {
			return err
		}
	}
	return nil
}

// rooted goes up from a row that is not on a circle further up, or not known to be.
func (t *tree) rooted(from turns.RowID) bool {
	for id, steps := from, 0; !id.IsZero() && !t.rows[id].rooted; id, steps = t.rows[id].parent, steps+1 {
		if steps == len(t.rows) {
			return false
		}
	}
	for id := from; !id.IsZero() && !t.rows[id].rooted; {
		p := t.rows[id]
		p.rooted = true
		t.rows[id], id = p, p.parent
	}
	return true
}
