package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"github.com/turnd/turnd/internal/telemetry"
)

// Values of --log-format and --log-level.
const (
	logText = "text"
	logJSON = "json"

	levelDebug = "debug"
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// newLogger makes the logger of a process. As text a line reads "time LEVEL message key=value ...", the message without
// quotes, so that people and grep find it as it is written in the code. There are no colours: logs are read from files.
// Lines of a request or run name its trace.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	if format == logJSON {
		return slog.New(telemetry.Logs(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slogLevel(level)})))
	}
	return slog.New(telemetry.Logs(tint.NewTextHandler(w, &tint.Options{Level: slogLevel(level), NoColor: true, TimeFormat: time.RFC3339Nano})))
}

func slogLevel(level string) slog.Level {
	switch level {
	case levelDebug:
		return slog.LevelDebug
	case levelWarn:
		return slog.LevelWarn
	case levelError:
		return slog.LevelError
	}
	return slog.LevelInfo
}
