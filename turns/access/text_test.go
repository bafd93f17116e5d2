package access_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/access"
)

func TestAMintedKeyIsReadBackAndNoTwoAreAlike(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text := access.Mint()
		read, err := access.ParseText(text.Reveal())
		require.NoError(t, err)
		require.Equal(t, text, read)
		require.True(t, access.Looks(text.Reveal()))
		require.True(t, access.IsID(text.ID()))
		require.Contains(t, text.Reveal(), text.ID())
		require.False(t, seen[text.ID()] || seen[text.Reveal()])
		seen[text.ID()], seen[text.Reveal()] = true, true
	}
}

func TestAKeyThatWasCutShortOrMistypedIsRefusedUnread(t *testing.T) {
	whole := access.Mint().Reveal()
	for n := range len(whole) {
		_, err := access.ParseText(whole[:n])
		require.Error(t, err, "the first %d characters", n)
		for _, other := range []byte{'a', 'b', 'Z', '_', '\x00', ' '} {
			if whole[n] == other {
				continue
			}
			wrong := whole[:n] + string(other) + whole[n+1:]
			_, err := access.ParseText(wrong)
			require.Error(t, err, "another character at %d", n)
			require.NotContains(t, err.Error(), wrong)
		}
	}
	for _, text := range []string{whole + "a", " " + whole, whole + "\n", strings.ToUpper(whole), whole + whole, "", "turnd_", whole[1:]} {
		_, err := access.ParseText(text)
		require.Error(t, err)
	}
	swapped := []byte(whole)
	at := len("turnd_") + 20
	for swapped[at] == swapped[at+1] {
		at++
	}
	swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
	_, err := access.ParseText(string(swapped))
	require.Error(t, err, "two characters changed places")
}

func FuzzParseText(f *testing.F) {
	f.Add(access.Mint().Reveal())
	f.Add("turnd_")
	f.Fuzz(func(t *testing.T, raw string) {
		text, err := access.ParseText(raw)
		if err == nil {
			require.Equal(t, raw, text.Reveal())
			require.True(t, access.IsID(text.ID()))
		}
	})
}

func TestAKeysSecretIsNeverShownByChance(t *testing.T) {
	text := access.Mint()
	secret := strings.TrimPrefix(text.Reveal(), "turnd_"+text.ID()+"_")
	key := access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: "acme", Subject: "ann"}
	encoded, err := json.Marshal(map[string]any{"text": text})
	require.NoError(t, err)
	var logged strings.Builder
	log := slog.New(slog.NewJSONHandler(&logged, nil))
	log.Info("m", "text", text, "key", key, "pointer", &text)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "text", text, "in", []any{text}, "key", key)
	shown := []string{string(encoded), logged.String(), text.String(), key.String(), access.Conceal("unexpected argument " + text.Reveal() + `" at the end`)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, text), fmt.Sprintf(verb, &text), fmt.Sprintf(verb, []access.Text{text}))
	}
	shown = append(shown, fmt.Sprint(key), fmt.Sprintf("%v", &key))
	for _, s := range shown {
		require.NotContains(t, s, secret)
		require.NotContains(t, s, fmt.Sprintf("%x", secret))
		require.NotContains(t, s, fmt.Sprintf("%x", text.Hash()))
	}
	require.Contains(t, text.String(), text.ID())
	require.Equal(t, `unexpected argument turnd_`+text.ID()+`_***" at the end`, shown[4])
}

func TestAKeyIsKeptOnlyIfItCanBeShownSafely(t *testing.T) {
	text := access.Mint()
	good := access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: "acme", Subject: "ann", Scopes: access.Scopes(), Name: "Büro, 2. Stock"}
	require.NoError(t, good.Check())
	for problem, spoil := range map[string]func(*access.Key){
		"tenant: must be 1 to 128":  func(k *access.Key) { k.Tenant = strings.Repeat("t", 200) },
		"subject: must be 1 to 128": func(k *access.Key) { k.Subject = "ann\n" },
		"tenant: must have no":      func(k *access.Key) { k.Tenant = "acme " },
		"subject: must have no":     func(k *access.Key) { k.Subject = " " },
		"name: must be at most 200": func(k *access.Key) { k.Name = strings.Repeat("n", 201) },
		"U+001B":                    func(k *access.Key) { k.Name = "\x1b[31mred" },
		"U+202E":                    func(k *access.Key) { k.Name = "abc\u202edef" },
		"must be UTF-8":             func(k *access.Key) { k.Name = "\xff" },
		"unknown scope":             func(k *access.Key) { k.Scopes = []access.Scope{"admin"} },
		"no scope":                  func(k *access.Key) { k.Scopes = nil },
		"no id or hash":             func(k *access.Key) { k.Hash = nil },
	} {
		k := good
		spoil(&k)
		require.ErrorContains(t, k.Check(), problem)
	}
}
