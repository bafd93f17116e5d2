package casetest

import (
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/telemetry"
	"github.com/turnd/turnd/turns/access"
)

// label is a label of a scrape and its value.
var label = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

func TestNoLabelOfAScrapeNamesATenantASubjectAnIDOrAText(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		tel, err := telemetry.Setup(w.ctx, telemetry.Config{Version: "test", InstanceID: "test"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, tel.Shutdown(w.ctx)) })
		w.meter = tel.Meters.Meter("turnd")
		server, kept := w.keep()
		plainly := w.ctx
		for _, tenant := range []string{"zqtenant-{evil}", `zqtenant\"}`, "zqtenant 1e9", "zqtenant"} {
			w.ctx = w.showing(w.gives(kept, tenant, "zqsubject", access.Scopes()...))
			for _, fault := range server.faults() {
				server.suffers(fault)
			}
			in := ask(newID(), newID(), "zqtext")
			w.script(plain(4))
			server.turn(in, nil).completes()
			server.turn(in, nil).completes()
			in.TurnId = "no id"
			_, err := server.submit(in)
			require.Error(t, err)
			w.ctx = plainly
		}
		scrape := httptest.NewRecorder()
		tel.MetricsHandler.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
		text := scrape.Body.String()
		require.Contains(t, text, "turnd_requests_total{")
		require.NotContains(t, text, "zq", "a tenant, a subject or a text")
		for _, l := range label.FindAllStringSubmatch(text, -1) {
			require.NotRegexp(t, `tenant|subject|conversation|turn_id|reply_id`, l[1])
			require.NotRegexp(t, `[0-9a-f]{8}-[0-9a-f]{4}-`, l[2], l[1])
			require.LessOrEqual(t, len(l[2]), 64, l[1])
		}
	})
}
