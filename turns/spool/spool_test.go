package spool

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// opened is a directory with what it logs.
func opened(t *testing.T, path string) (*Dir, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	d, err := Open(Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	return d, &log
}

const secret = "a reply <of> \"which\" nobody & nothing\x01 else knows\u2028"

// spooled is an ending with something in every corner.
func spooled() turns.Spooled {
	temperature := 0.5
	conversation := turns.ConversationID{UUID: uuid.New()}
	key := turns.KeyOf("tenant", conversation)
	f := turns.Fence{Key: key, Reply: turns.ReplyID{UUID: uuid.New()}, Epoch: 2, Owner: turns.WorkerID{UUID: uuid.New()}}
	call := turns.CallID{UUID: uuid.New()}
	return turns.Spooled{
		Claim: turns.Claim{Key: key, Tenant: "tenant", Conversation: conversation, Reply: turns.NewReply{ID: f.Reply,
			Options: turns.Options{Temperature: &temperature}, Route: turns.Route{Model: "m", Endpoint: "e"}, RequestHash: []byte{0, 255}}},
		Reply: turns.Reply{Conversation: conversation, ID: f.Reply, Epoch: 2, Calls: 2, CreateTime: time.Unix(1, 2).UTC()},
		Call:  turns.NewCall{ID: call, Number: 2},
		First: 7,
		Ending: turns.Ending{Fence: f, Verb: turns.VerbComplete, Status: turns.StatusComplete, StoredLength: 3, Length: 99,
			Content:    []turns.Piece{{Kind: turns.KindText, Starts: true, Text: secret, Ends: true, Seal: "s"}},
			StopReason: turns.StopEndTurn, Usage: turns.Usage{Input: 1, Output: 2, Source: turns.SourceReported},
			Call: &turns.CallOutcome{Key: key, ID: call, Class: turns.ClassOK}},
		KeptAt: time.Unix(3, 0).UTC(),
	}
}

func none(turns.ReplyID) bool { return false }

func kept(t *testing.T, d *Dir) []turns.Spooled {
	t.Helper()
	all, err := d.Kept(t.Context(), 100, none)
	require.NoError(t, err)
	return all
}

// names lists the files below the directory.
func names(t *testing.T, d *Dir) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, d.name(path))
		}
		return err
	}))
	return all
}

func TestAKeptEndingIsReadBackAsItWasByThisProcessAndTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "above", "spool")
	d, _ := opened(t, path)
	e := spooled()
	require.NoError(t, d.Keep(t.Context(), e))
	next, _ := opened(t, path)
	for _, d := range []*Dir{d, next} {
		require.Empty(t, cmp.Diff([]turns.Spooled{e}, kept(t, d)))
	}
	require.Equal(t, []string{e.Ending.Fence.Key.String() + "/" + e.Ending.Fence.Reply.String() + "-2.json"}, names(t, d))
}

func TestOnlyItsOwnerReadsTheSpool(t *testing.T) {
	d, _ := opened(t, filepath.Join(t.TempDir(), "spool"))
	require.NoError(t, d.Keep(t.Context(), spooled()))
	require.NoError(t, filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

func TestAnEndingThatIsKeptAgainReplacesItself(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	e := spooled()
	require.NoError(t, d.Keep(t.Context(), e))
	e.Ending.Length = 100
	require.NoError(t, d.Keep(t.Context(), e))
	require.Empty(t, cmp.Diff([]turns.Spooled{e}, kept(t, d)))
}

func TestADroppedEndingLeavesNothingAndDroppingAgainIsNoError(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	e := spooled()
	other := spooled()
	other.Ending.Fence.Key = e.Ending.Fence.Key
	require.NoError(t, d.Keep(t.Context(), e))
	require.NoError(t, d.Keep(t.Context(), other))
	for range 2 {
		require.NoError(t, d.Drop(t.Context(), e.Ending.Fence))
		require.Len(t, kept(t, d), 1)
	}
	require.NoError(t, d.Drop(t.Context(), other.Ending.Fence))
	left, err := os.ReadDir(d.path)
	require.NoError(t, err)
	require.Empty(t, left, "the conversation's folder has gone too")
}

func TestTheOldestEndingsComeFirstAndAgeIsNoReasonToLoseOne(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	var want []turns.ReplyID
	for i := range 5 {
		e := spooled()
		require.NoError(t, d.Keep(t.Context(), e))
		old := time.Now().Add(-time.Duration(i) * 1000 * time.Hour)
		require.NoError(t, os.Chtimes(d.file(e.Ending.Fence), old, old))
		want = append([]turns.ReplyID{e.Ending.Fence.Reply}, want...)
	}
	var got []turns.ReplyID
	for _, e := range kept(t, d) {
		got = append(got, e.Ending.Fence.Reply)
	}
	require.Equal(t, want, got)
	some, err := d.Kept(t.Context(), 2, none)
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, want[0], some[0].Ending.Fence.Reply)
}

func TestWhatCanNotBeReadIsSetAsideOnceAndKeepsNoOtherFromBeingRead(t *testing.T) {
	for reason, spoil := range map[string]func(t *testing.T, path string, raw []byte) (renamed string){
		"checksum": func(t *testing.T, path string, raw []byte) string {
			return written(t, path, bytes.Replace(raw, []byte("nobody"), []byte("anyone"), 1))
		},
		"cut short": func(t *testing.T, path string, raw []byte) string { return written(t, path, raw[:len(raw)/2]) },
		"no JSON":   func(t *testing.T, path string, _ []byte) string { return written(t, path, nil) },
		"another format": func(t *testing.T, path string, raw []byte) string {
			return written(t, path, bytes.Replace(raw, []byte(format), []byte("else"), 1))
		},
		"version 2": func(t *testing.T, path string, raw []byte) string {
			return written(t, path, bytes.Replace(raw, []byte(`"version":1`), []byte(`"version":2`), 1))
		},
		"body is no ending": func(t *testing.T, path string, _ []byte) string {
			body := `["` + secret[:7] + `"]`
			return written(t, path, []byte(`{"format":"turnd-spool","version":1,"sha256":"`+checksum([]byte(body))+`","body":`+body+`}`))
		},
		"larger than": func(t *testing.T, path string, _ []byte) string {
			require.NoError(t, os.Truncate(path, DefaultMaxBytes+1))
			return path
		},
		"name is none of a spooled ending": func(t *testing.T, path string, _ []byte) string {
			return moved(t, path, filepath.Join(filepath.Dir(path), "notes.json"))
		},
		"name is not that of the reply in it": func(t *testing.T, path string, _ []byte) string {
			return moved(t, path, strings.Replace(path, "-2.json", "-3.json", 1))
		},
		"no regular file": func(t *testing.T, path string, _ []byte) string {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
			return path
		},
	} {
		t.Run(reason, func(t *testing.T) {
			d, log := opened(t, t.TempDir())
			bad, good := spooled(), spooled()
			require.NoError(t, d.Keep(t.Context(), bad))
			require.NoError(t, d.Keep(t.Context(), good))
			path := d.file(bad.Ending.Fence)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			path = spoil(t, path, raw)
			for range 2 {
				require.Empty(t, cmp.Diff([]turns.Spooled{good}, kept(t, d)))
			}
			require.NoFileExists(t, path)
			_, err = os.Stat(path + ".bad")
			require.NoError(t, err, "it is still there for people")
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
			require.Contains(t, log.String(), reason)
			require.NotContains(t, log.String(), secret[:7])
		})
	}
}

func TestAFolderThatCanNotBeReadKeepsNoOtherFromBeingRead(t *testing.T) {
	d, log := opened(t, t.TempDir())
	bad, good := spooled(), spooled()
	require.NoError(t, d.Keep(t.Context(), bad))
	require.NoError(t, d.Keep(t.Context(), good))
	folder := filepath.Dir(d.file(bad.Ending.Fence))
	d.disk.open = func(path string) (*os.File, error) {
		if path == folder {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		}
		return os.Open(path)
	}
	require.Empty(t, cmp.Diff([]turns.Spooled{good}, kept(t, d)))
	require.Contains(t, log.String(), filepath.Base(folder))
	d.disk.open = os.Open
	require.Len(t, kept(t, d), 2, "it is read once it can be")
}

func written(t *testing.T, path string, raw []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

func moved(t *testing.T, from, to string) string {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
	return to
}

func TestWhatBelongsToOthersIsLeftAlone(t *testing.T) {
	d, log := opened(t, t.TempDir())
	e := spooled()
	require.NoError(t, d.Keep(t.Context(), e))
	folder := filepath.Dir(d.file(e.Ending.Fence))
	for _, path := range []string{
		filepath.Join(d.path, "notes.json"), filepath.Join(d.path, uuid.NewString()), filepath.Join(folder, "README"),
		filepath.Join(folder, "x.json.bad"),
	} {
		written(t, path, []byte("mine"))
	}
	for _, name := range []string{"lost+found", strings.ReplaceAll(uuid.NewString(), "-", "")} {
		require.NoError(t, os.Mkdir(filepath.Join(d.path, name), 0o700))
		written(t, filepath.Join(d.path, name, "notes.json"), []byte("mine"))
	}
	before := names(t, d)
	require.Len(t, kept(t, d), 1)
	require.Equal(t, before, names(t, d))
	require.Empty(t, log.String())
}

func TestACrashBetweenWriteAndRenameKeepsWhatWasThereAndItsScrapIsRemovedWhenOld(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	e := spooled()
	require.NoError(t, d.Keep(t.Context(), e))
	crash := errors.New("the power went")
	d.disk.rename = func(string, string) error { return crash }
	late := e
	late.Ending.Length = 100
	require.ErrorIs(t, d.Keep(t.Context(), late), crash)
	require.Len(t, names(t, d), 1, "a failure that is survived leaves no scrap")

	scrap := filepath.Join(filepath.Dir(d.file(e.Ending.Fence)), "x-2-123.tmp")
	written(t, scrap, []byte("half"))
	require.Empty(t, cmp.Diff([]turns.Spooled{e}, kept(t, d)))
	require.FileExists(t, scrap, "its writer may be at it")
	old := time.Now().Add(-2 * tempAge)
	require.NoError(t, os.Chtimes(scrap, old, old))
	require.Len(t, kept(t, d), 1)
	require.NoFileExists(t, scrap)
}

func TestAnEndingIsOnTheDiskBeforeKeepReturns(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	var steps []string
	sync, rename := d.disk.sync, d.disk.rename
	d.disk.sync = func(f *os.File) error {
		info, err := f.Stat()
		require.NoError(t, err)
		switch {
		case f.Name() == d.path:
			steps = append(steps, "sync spool")
		case info.IsDir():
			steps = append(steps, "sync folder")
		default:
			require.Positive(t, info.Size())
			steps = append(steps, "sync file")
		}
		return sync(f)
	}
	d.disk.rename = func(from, to string) error {
		steps = append(steps, "rename")
		return rename(from, to)
	}
	require.NoError(t, d.Keep(t.Context(), spooled()))
	require.Equal(t, []string{"sync spool", "sync file", "rename", "sync folder"}, steps)

	broken := errors.New("input/output error")
	d.disk.sync = func(*os.File) error { return broken }
	require.ErrorIs(t, d.Keep(t.Context(), spooled()), broken)
}

func TestADirectoryThatIsRemovedMeanwhileIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "above", "spool")
	d, _ := opened(t, path)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.Empty(t, kept(t, d))
	require.NoError(t, d.Keep(t.Context(), spooled()))
	require.Len(t, kept(t, d), 1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(dirMode), info.Mode().Perm())
}

func TestAnEndingThatIsTooLargeIsRefusedWhenItIsKept(t *testing.T) {
	d, err := Open(Config{Path: t.TempDir(), Logger: slog.New(slog.DiscardHandler), MaxBytes: 100})
	require.NoError(t, err)
	require.ErrorContains(t, d.Keep(t.Context(), spooled()), "the limit is 100")
	require.Empty(t, names(t, d))
}

func TestRepliesThatArePassedOverTakeNoRoom(t *testing.T) {
	d, _ := opened(t, t.TempDir())
	passed, e := spooled(), spooled()
	require.NoError(t, d.Keep(t.Context(), passed))
	require.NoError(t, d.Keep(t.Context(), e))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(d.file(passed.Ending.Fence), old, old))
	got, err := d.Kept(t.Context(), 1, func(id turns.ReplyID) bool { return id == passed.Ending.Fence.Reply })
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]turns.Spooled{e}, got))
}

func TestADirectoryThatCanNotBeWrittenIsRefusedAtTheStart(t *testing.T) {
	file := written(t, filepath.Join(t.TempDir(), "file"), nil)
	_, err := Open(Config{Path: filepath.Join(file, "spool"), Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "make the spool dir")
}

func TestProcessesThatShareADirectoryDoNotHarmEachOther(t *testing.T) {
	path := t.TempDir()
	one := spooled()
	var wg sync.WaitGroup
	failed := make(chan error, 1000)
	for range 4 {
		d, log := opened(t, path)
		wg.Go(func() {
			for range 50 {
				failed <- errors.Join(d.Keep(context.Background(), one), d.Drop(context.Background(), one.Ending.Fence))
				_, err := d.Kept(context.Background(), 10, none)
				failed <- err
			}
			if log.Len() > 0 {
				failed <- errors.New(log.String())
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	d, _ := opened(t, path)
	require.Empty(t, kept(t, d))
}
