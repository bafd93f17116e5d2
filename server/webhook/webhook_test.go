package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var at = time.Unix(1614265330, 0)

func headers(id, timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	h.Set("webhook-signature", signature)
	return h
}

func key(t *testing.T) webhook.Key {
	t.Helper()
	k, err := webhook.ParseKey(secret)
	require.NoError(t, err)
	return k
}

func sign(k webhook.Key, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, k)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// The message is the example of the Standard Webhooks libraries.
func TestTheExampleOfTheStandardIsVerified(t *testing.T) {
	h, err := webhook.ReadHead(headers("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), at)
	require.NoError(t, err)
	require.NoError(t, h.Verify(key(t), []byte(`{"test": 2432232314}`)))
}

func TestOneOfSeveralSignaturesIsEnoughAndNoneOfAnotherKeyFits(t *testing.T) {
	good, other := sign(key(t), "m", "1614265330", "body"), sign(webhook.Key("other"), "m", "1614265330", "body")
	for signature, fits := range map[string]bool{
		good: true, other + " " + good: true, "v1a,xyz " + good: true, good + " " + other: true, "v1,!!! " + good: true,
		other: false, "v1," + strings.TrimPrefix(good, "v1,")[1:]: false, "v1,": false, "v2," + strings.TrimPrefix(good, "v1,"): false,
		strings.Repeat(other+" ", 16) + good: false,
	} {
		h, err := webhook.ReadHead(headers("m", "1614265330", signature), at)
		require.NoError(t, err)
		if err := h.Verify(key(t), []byte("body")); fits {
			require.NoError(t, err, signature)
		} else {
			require.ErrorIs(t, err, webhook.ErrSignature, signature)
		}
	}
	h, err := webhook.ReadHead(headers("m", "1614265330", good), at)
	require.NoError(t, err)
	require.ErrorIs(t, h.Verify(key(t), []byte("Body")), webhook.ErrSignature)
}

func TestAMessageCountsForFiveMinutesInEitherDirection(t *testing.T) {
	for _, c := range []struct {
		off  time.Duration
		want error
	}{
		{0, nil}, {webhook.Window, nil}, {-webhook.Window, nil},
		{webhook.Window + time.Second, webhook.ErrTime}, {-webhook.Window - time.Second, webhook.ErrTime},
	} {
		_, err := webhook.ReadHead(headers("m", "1614265330", "v1,x"), at.Add(c.off))
		require.ErrorIs(t, err, c.want, "%s", c.off)
	}
	for _, far := range []string{"9223372036854775807", "-9223372036854775808", "0"} {
		_, err := webhook.ReadHead(headers("m", far, "v1,x"), at)
		require.ErrorIs(t, err, webhook.ErrTime, far)
	}
}

func TestAMessageWithoutItsHeadersIsRefused(t *testing.T) {
	for _, h := range []http.Header{{}, headers("", "1614265330", "v1,x"), headers("m", "", "v1,x"), headers("m", "soon", "v1,x"),
		headers("m", "1614265330", ""), headers("m", "1614265330", "  "), headers(strings.Repeat("m", 257), "1614265330", "v1,x")} {
		_, err := webhook.ReadHead(h, at)
		require.ErrorIs(t, err, webhook.ErrHeaders)
	}
}

func TestASecretThatIsNoneIsAnError(t *testing.T) {
	for _, s := range []string{"", "whsec_", "whsec_not base64", "hunter2!"} {
		_, err := webhook.ParseKey(s)
		require.ErrorIs(t, err, webhook.ErrSecret)
	}
	plain, err := webhook.ParseKey(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	require.Equal(t, key(t), plain)
}

func TestAnIdIsTakenOnceWithinItsTimeUnlessItIsForgotten(t *testing.T) {
	var m webhook.Memory
	require.True(t, m.Take("a", at))
	require.False(t, m.Take("a", at.Add(2*webhook.Window-time.Second)))
	m.Forget("a")
	require.True(t, m.Take("a", at.Add(webhook.Window)))
	require.False(t, m.Take("a", at.Add(2*webhook.Window+time.Second)), "the end of the first does not end the second")
	require.True(t, m.Take("a", at.Add(3*webhook.Window)))
}

func TestTheMemoryIsBoundedAndForgetsTheOldestFirst(t *testing.T) {
	var m webhook.Memory
	for i := range 1<<14 + 1 {
		require.True(t, m.Take(fmt.Sprint(i), at))
	}
	require.False(t, m.Take("5", at))
	require.True(t, m.Take("0", at), "room was made for the last")
}
