package rig

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers each line with itself, and says on heard what it has read.
func echo(t *testing.T) (addr string, heard <-chan string) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	lines := make(chan string, 16)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for in := bufio.NewScanner(conn); in.Scan(); {
					lines <- in.Text()
					_, _ = conn.Write([]byte(in.Text() + "\n"))
				}
			}()
		}
	}()
	return listener.Addr().String(), lines
}

func dial(t *testing.T, l *Link) net.Conn {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a line and gives the answer.
func ask(conn net.Conn, line string, patience time.Duration) (string, error) {
	if _, err := conn.Write([]byte(line + "\n")); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return bufio.NewReader(conn).ReadString('\n')
}

func newLink(t *testing.T) (*Link, <-chan string) {
	t.Helper()
	addr, heard := echo(t)
	l, err := NewLink(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, heard
}

func TestALostAnswerIsToAQuestionThatGotThrough(t *testing.T) {
	l, heard := newLink(t)
	conn := dial(t, l)
	if got, err := ask(conn, "first", time.Minute); err != nil || got != "first\n" {
		t.Fatal(got, err)
	}
	<-heard
	l.LoseAnswerTo("mark")
	if got, err := ask(conn, "with a mark", time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the answer was not lost: %q, %v", got, err)
	}
	if line := <-heard; line != "with a mark" || l.Losses() != 1 {
		t.Errorf("heard %q, lost %d", line, l.Losses())
	}
	if got, err := ask(dial(t, l), "with a mark", time.Minute); err != nil {
		t.Errorf("a second answer was lost: %q, %v", got, err)
	}
}

func TestAStallHoldsBytesAndLosesNone(t *testing.T) {
	l, heard := newLink(t)
	conn := dial(t, l)
	l.Stall(Down)
	if _, err := ask(conn, "held", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an answer came: %v", err)
	}
	<-heard
	l.Heal()
	_ = conn.SetReadDeadline(time.Time{})
	if got, err := bufio.NewReader(conn).ReadString('\n'); err != nil || got != "held\n" {
		t.Error(got, err)
	}
}

func TestARefusedLinkEndsWhatIsThereAndWhatComes(t *testing.T) {
	l, _ := newLink(t)
	conn := dial(t, l)
	if _, err := ask(conn, "one", time.Minute); err != nil {
		t.Fatal(err)
	}
	l.Refuse()
	if got, err := ask(conn, "two", time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what was there is answered %q, %v", got, err)
	}
	var dialer net.Dialer
	if late, err := dialer.DialContext(t.Context(), "tcp", l.Addr()); err == nil { // else it was reset even earlier
		if got, err := ask(late, "two", time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("what came is answered %q, %v", got, err)
		}
		_ = late.Close()
	}
	l.Heal()
	if _, err := ask(dial(t, l), "three", time.Minute); err != nil {
		t.Error(err)
	}
}
