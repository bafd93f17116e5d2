package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// nowhere takes every conversation and keeps none, only calls to look at.
type nowhere struct {
	turns.Archive
	written int
	calls   []*turns.ArchivedCall
}

func (n *nowhere) WriteArchived(_ context.Context, _ turns.ArchivedConversation, records iter.Seq2[turns.ArchivedRecord, error], _ bool) (bool, error) {
	for r, err := range records {
		if err != nil {
			return false, err
		}
		if r.Call != nil {
			n.calls = append(n.calls, r.Call)
		}
	}
	n.written++
	return true, nil
}

const (
	at       = `"create_time":"2026-01-02T03:04:05.000006Z"`
	firstID  = `019b0000-0000-7000-8000-000000000001`
	secondID = `019b0000-0000-7000-8000-000000000002`
	thirdID  = `019b0000-0000-7000-8000-000000000003`
	header   = `{"kind":"turnd-archive","version":1}`
	begins   = `{"kind":"conversation","tenant":"t","subject":"s","conversation_id":"` + firstID + `","defaults_version":2,"next_seq":9,"version":3,` +
		`"leaf_id":"` + secondID + `","last_turn_id":"` + firstID + `",` + at + `,"update_time":"2026-01-02T03:04:05Z"}`
	versions  = `{"kind":"defaults","version":1,"defaults":{"Model":"m"},` + at + `}`
	inputHash = "aDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
	question  = `{"kind":"turn","id":"` + firstID + `","seq":1,"content":[{"kind":"text","text":"hi"}],"input_hash":"` + inputHash + `","generation":1,` + at + `}`
	answer    = `{"kind":"reply","id":"` + secondID + `","parent_id":"` + firstID + `","seq":2,"content":[{"b":0,"k":"text","s":true,"t":"qz","e":true}],` +
		`"generation":1,"responds_to":"` + firstID + `","status":"complete","attempt":1,"epoch":1,"owner":"` + thirdID + `","log_len":4,` + at +
		`,"end_time":"2026-01-02T03:04:06Z"}`
	call = `{"kind":"call","call_id":"` + thirdID + `","turn_id":"` + firstID + `","generation":1,"reply_id":"` + secondID + `","epoch":1,"number":1,` +
		`"endpoint":"e","provider":"p","model":"m","class":"ok","idempotency_key":"k","request_bytes":7,` + at + `,"end_time":"2026-01-02T03:04:06Z"}`
	ends    = `{"kind":"end","defaults":1,"rows":2,"calls":1}`
	trailer = `{"kind":"turnd-archive-end","conversations":1}`
)

// whole is a good file, line by line.
func whole() []string {
	return []string{header, begins, versions, question, answer, call, ends, trailer}
}

func imports(text string) (*nowhere, Imported, error) {
	to := &nowhere{}
	count, err := Import(context.Background(), to, strings.NewReader(text), Options{})
	return to, count, err
}

func joined(lines []string) string { return strings.Join(lines, "\n") + "\n" }

func TestAGoodFileIsImported(t *testing.T) {
	to, count, err := imports(joined(whole()))
	require.NoError(t, err)
	require.Equal(t, 1, to.written)
	require.Equal(t, Imported{Written: 1, Turns: 1, Replies: 1, Calls: 1}, count)
}

func TestACallOfAnOlderArchiveGetsALayer(t *testing.T) {
	for layer, says := range map[turns.Layer]string{
		turns.LayerFirst:    `,"first":true`,
		turns.LayerProvider: ``,
		turns.LayerTakeover: `,"layer":"takeover"`,
	} {
		lines := whole()
		lines[5] = strings.Replace(call, `"number":1`, `"number":1`+says, 1)
		to, _, err := imports(joined(lines))
		require.NoError(t, err, layer)
		require.Equal(t, layer, to.calls[0].Layer)
	}
}

func TestABadLineIsNamedWithItsFieldAndNothingOfItsConversationIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		line     int
		old, new string
		field    string
	}{
		"another version":            {1, `"version":1`, `"version":2`, "version"},
		"another kind of file":       {1, `turnd-archive`, `backup`, "kind"},
		"no tenant":                  {2, `"tenant":"t"`, `"tenant":""`, "tenant"},
		"NUL in a subject":           {2, `"subject":"s"`, `"subject":"s\u0000"`, "subject"},
		"a label without a key":      {2, `"version":3`, `"version":3,"labels":{"":"x"}`, "labels"},
		"a negative number":          {2, `"version":3`, `"version":-3`, "version"},
		"an id that is none":         {2, firstID, `x`, ""},
		"a place past the last":      {2, `"next_seq":9`, `"next_seq":2`, "seq"},
		"a leaf of elsewhere":        {2, secondID, thirdID, "leaf_id"},
		"a last turn that is none":   {2, `"last_turn_id":"` + firstID, `"last_turn_id":"` + secondID, "last_turn_id"},
		"a field that is unknown":    {4, `"seq":1`, `"seq":1,"colour":"red"`, "colour"},
		"a number that is text":      {4, `"seq":1`, `"seq":"1"`, "seq"},
		"a kind that is unknown":     {4, `"kind":"turn"`, `"kind":"tool"`, "kind"},
		"no kind":                    {4, `"kind":"turn",`, ``, "kind"},
		"content that is none":       {4, `[{"kind":"text","text":"hi"}]`, `[{"kind":"song"}]`, "content"},
		"no hash":                    {4, `"` + inputHash + `"`, `""`, "input_hash"},
		"a short hash":               {4, `"` + inputHash + `"`, `"aGg="`, "input_hash"},
		"a call in a turn":           {4, `"kind":"text"`, `"kind":"tool_use"`, "content[0]"},
		"an image that is none":      {4, `"kind":"text","text":"hi"`, `"kind":"image","media_type":"image/png","data":"AAAA"`, "content[0].image.data"},
		"an image without data":      {4, `"kind":"text","text":"hi"`, `"kind":"image","media_type":"image/png"`, "content[0].image.data"},
		"an image of a file":         {4, `"kind":"text","text":"hi"`, `"kind":"image","media_type":"image/png","url":"file:///etc/passwd"`, "content[0].image.url"},
		"no room for generations":    {4, `"generation":1`, `"generation":2147483647`, "generation"},
		"no room for attempts":       {5, `"attempt":1`, `"attempt":2147483647`, "attempt"},
		"no room for epochs":         {5, `"epoch":1`, `"epoch":9223372036854775807`, "epoch"},
		"no room for rows":           {2, `"next_seq":9`, `"next_seq":9223372036854775807`, "next_seq"},
		"no room for versions":       {2, `"version":3`, `"version":9223372036854775807`, "version"},
		"a long title":               {2, `"version":3`, `"version":3,"title":"` + strings.Repeat("é", 513) + `"`, "title"},
		"a tenant over two lines":    {2, `"tenant":"t"`, `"tenant":"t\nx"`, "tenant"},
		"a long subject":             {2, `"subject":"s"`, `"subject":"` + strings.Repeat("s", 129) + `"`, "subject"},
		"a reply to what waits":      {4, `"seq":1`, `"seq":1,"waiting":{"tenant":"t"}`, "responds_to"},
		"no time":                    {4, at, `"seq":1`, "create_time"},
		"a parent of elsewhere":      {4, `"seq":1`, `"seq":1,"parent_id":"` + thirdID + `"`, "parent_id"},
		"a parent below its child":   {4, `"seq":1`, `"seq":1,"parent_id":"` + secondID + `"`, "parent_id"},
		"a turn that is its parent":  {4, `"seq":1`, `"seq":1,"parent_id":"` + firstID + `"`, "parent_id"},
		"an id twice":                {5, `"id":"` + secondID, `"id":"` + firstID, "id"},
		"a place twice":              {5, `"seq":2`, `"seq":1`, "seq"},
		"a reply to no turn":         {5, `"responds_to":"` + firstID, `"responds_to":"` + thirdID, "responds_to"},
		"a reply that runs":          {5, `"complete"`, `"in_flight"`, "status"},
		"an end without a reason":    {5, `"complete"`, `"abandoned"`, "reason"},
		"a log of another length":    {5, `"log_len":4`, `"log_len":5`, "log_len"},
		"a log out of order":         {5, `"b":0`, `"b":1`, "content"},
		"a call that is open":        {6, `"class":"ok"`, `"class":""`, "class"},
		"a layer that is none":       {6, `"class":"ok"`, `"class":"ok","layer":"gateway"`, "layer"},
		"a missing line":             {7, `"rows":2`, `"rows":3`, ""},
		"a missing conversation":     {8, `"conversations":1`, `"conversations":2`, "conversations"},
		"half a line":                {5, `"status"`, "\n", ""},
		"two values":                 {5, answer, answer + answer, ""},
		"bytes that are no text":     {5, `"qz"`, "\"\xff\"", ""},
		"a turn before conversation": {2, begins, question, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := whole()
			require.Contains(t, lines[c.line-1], c.old)
			lines[c.line-1] = strings.Replace(lines[c.line-1], c.old, c.new, 1)
			to, count, err := imports(joined(lines))
			var wrong *LineError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.field, wrong.Field, "%v", err)
			require.GreaterOrEqual(t, wrong.Line, c.line, "%v", err)
			require.NotContains(t, err.Error(), "qz", "what was said is not told")
			if c.line < 8 {
				require.Equal(t, 0, to.written+count.Written)
			}
		})
	}
}

func TestAFileThatIsCutOffAnywhereIsRefused(t *testing.T) {
	text := joined(whole())
	for n := range len(text) - 1 {
		_, _, err := imports(text[:n])
		require.ErrorAs(t, err, new(*LineError), "after %d bytes", n)
	}
	_, _, err := imports(text + text)
	require.ErrorContains(t, err, "comes after the end")
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestALineWithoutAnEndIsRefusedAtItsBound(t *testing.T) {
	_, err := Import(context.Background(), &nowhere{}, io.MultiReader(strings.NewReader(header+"\n"), endless{}), Options{})
	require.EqualError(t, err, fmt.Sprintf("line 2: is longer than %d bytes", MaxLine))
}

func TestAReaderThatFailsEndsTheImport(t *testing.T) {
	failed := errors.New("disk")
	_, err := Import(context.Background(), &nowhere{}, io.MultiReader(strings.NewReader(header+"\n"), failing{failed}), Options{})
	require.ErrorIs(t, err, failed)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzNoFilePanicsOrIsTakenInHalf(f *testing.F) {
	f.Add(joined(whole()))
	f.Add(header + "\n" + begins + "\n" + ends)
	f.Fuzz(func(t *testing.T, text string) {
		to, count, err := imports(text)
		require.Equal(t, to.written, count.Written)
		if err != nil {
			require.ErrorAs(t, err, new(*LineError))
		}
	})
}
