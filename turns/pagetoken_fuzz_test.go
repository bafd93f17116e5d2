package turns

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// FuzzPageTokensLeadToAPlaceOrAreRefused takes any text as the token of every list. One that is taken is one that a page could
// have given; any other is refused by its field.
func FuzzPageTokensLeadToAPlaceOrAreRefused(f *testing.F) {
	id, at := uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000001"), time.UnixMicro(1_700_000_000_000_000)
	for _, token := range []string{"", "AQ", "====", "\x00\xff", pageToken(RowID{id}, RowID{}), pageToken(RowID{id}, RowID{id}), placeToken(heldPage, at, id), placeToken(callPage, at, id),
		conversationToken(Conversation{UpdateTime: at, Key: ConversationKey(id)})} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		refused := func(err error) bool {
			if err == nil {
				return false
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, CodeInvalidField, e.Code)
			require.Equal(t, "page_token", e.Field)
			return true
		}
		// Base64 leaves bits over at its end, so a token is held to what it leads to and not to its text.
		if row, err := parsePageToken(token, RowID{}); !refused(err) {
			again, err := parsePageToken(pageToken(row, row), row)
			require.NoError(t, err)
			require.Equal(t, row, again)
			_, err = parsePageToken(pageToken(row, RowID{uuid.New()}), row)
			require.Equal(t, !row.IsZero(), refused(err), "of another leaf")
		}
		if at, key, err := parseConversationToken(token); !refused(err) {
			time, again, err := parseConversationToken(conversationToken(Conversation{UpdateTime: at, Key: key}))
			require.NoError(t, err)
			require.True(t, at.Equal(time))
			require.Equal(t, key, again)
		}
		for _, kind := range []byte{heldPage, callPage} {
			at, id, err := parsePlace(kind, token)
			if refused(err) || token == "" {
				continue
			}
			time, again, err := parsePlace(kind, placeToken(kind, at, id))
			require.NoError(t, err)
			require.True(t, at.Equal(time))
			require.Equal(t, id, again)
		}
	})
}
