package migrations_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// reply is what the CHECKs look at.
type reply struct {
	status turns.Status
	reason turns.Reason
	ended  bool
}

// insert tries to store the reply to a user turn and leaves nothing behind.
func (d database) insert(t *testing.T, r reply) error {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	_, err = tx.Exec(`INSERT INTO turns (conversation_key, id, role, seq, input_hash, create_time)
		VALUES ($1, $2, 'user', 1, $3, $4)`, d.uuid(1), d.uuid(2), []byte{1}, d.moment)
	require.NoError(t, err)
	var end any
	if r.ended {
		end = d.moment
	}
	_, err = tx.Exec(`INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, reason, attempt,
		epoch, owner, create_time, end_time) VALUES ($1, $2, 'assistant', $3, $3, 2, $4, $5, 1, 1, $6, $7, $8)`,
		d.uuid(1), d.uuid(3), d.uuid(2), string(r.status), string(r.reason), d.uuid(4), d.moment, end)
	return err
}

func ends(s turns.Status) bool { return s == turns.StatusComplete || s == turns.StatusAbandoned }

func TestEveryOutcomeOfTheTransitionTableCanBeStored(t *testing.T) {
	eachEngine(t, func(t *testing.T, d database) {
		d.up(t)
		for _, tr := range turns.Transitions {
			reasons := tr.Reasons
			if tr.To != turns.StatusAbandoned {
				reasons = []turns.Reason{""}
			} else if len(reasons) == 0 {
				reasons = turns.Reasons
			}
			for _, reason := range reasons {
				require.NoError(t, d.insert(t, reply{tr.To, reason, ends(tr.To)}), "%s to %s %s", tr.Verb, tr.To, reason)
			}
		}
		for _, reason := range turns.Reasons {
			require.NoError(t, d.insert(t, reply{turns.StatusAbandoned, reason, true}), reason)
		}
	})
}

func TestNothingButTheStatesOfTheTableCanBeStored(t *testing.T) {
	refused := map[string]reply{
		"a status nobody knows":       {"queued", "", false},
		"a reason nobody knows":       {turns.StatusAbandoned, "bored", true},
		"abandoned without a reason":  {turns.StatusAbandoned, "", true},
		"complete with a reason":      {turns.StatusComplete, turns.ReasonEmpty, true},
		"in flight with a reason":     {turns.StatusInFlight, turns.ReasonDeadline, false},
		"complete without an end":     {turns.StatusComplete, "", false},
		"abandoned without an end":    {turns.StatusAbandoned, turns.ReasonDeadline, false},
		"in flight that has ended":    {turns.StatusInFlight, "", true},
		"held that has ended":         {turns.StatusHeld, "", true},
		"a reply without any status":  {"", "", false},
		"a reason in the wrong case":  {turns.StatusAbandoned, "Deadline", true},
		"a status with a blank in it": {"in_flight ", "", false},
	}
	eachEngine(t, func(t *testing.T, d database) {
		d.up(t)
		for name, r := range refused {
			require.Error(t, d.insert(t, r), name)
		}
	})
}

func TestTheChecksListNothingThatTheDomainLacks(t *testing.T) {
	statuses := []turns.Status{turns.StatusInFlight, turns.StatusComplete, turns.StatusHeld, turns.StatusAbandoned}
	for _, file := range []string{"postgres/00001_turns.sql", "sqlite/00001_turns.sql"} {
		t.Run(file, func(t *testing.T) {
			require.ElementsMatch(t, append(words(turns.Reasons), ""), listed(t, file, "turns_reasons"))
			require.ElementsMatch(t, words(statuses), listed(t, file, "turns_status"))
		})
	}
}

// listed is the list of literals in a CHECK of that name.
func listed(t *testing.T, file, constraint string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	check := regexp.MustCompile(`(?s)CONSTRAINT ` + constraint + ` CHECK \(\w+ IN \((.*?)\)\)`).FindSubmatch(text)
	require.NotNil(t, check, "no CHECK named %s", constraint)
	var list []string
	for _, literal := range regexp.MustCompile(`'(\w*)'`).FindAllSubmatch(check[1], -1) {
		list = append(list, string(literal[1]))
	}
	return list
}

func words[T ~string](list []T) []string {
	var plain []string
	for _, w := range list {
		plain = append(plain, string(w))
	}
	return plain
}
