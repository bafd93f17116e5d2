package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// aimock is a provider that this project did not write: it keeps a journal of every request it got.
type aimock struct {
	*process
	url string
}

const aimockCLI = "internal/tools/node/node_modules/@copilotkit/aimock/dist/cli.js"

func (l *lab) aimock() (*aimock, error) {
	if _, err := os.Stat(aimockCLI); err != nil {
		return nil, errors.New("the npm package @copilotkit/aimock is missing: run make deps")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	text := strings.Repeat("one turn one reply one bill ", 12)
	fixture, err := json.Marshal(object{"fixtures": []object{{"match": object{"userMessage": "turn"}, "response": object{"content": text}}}})
	if err != nil {
		return nil, err
	}
	file, err := l.write("fixture.json", string(fixture))
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	cli, err := filepath.Abs(aimockCLI)
	if err != nil {
		return nil, err
	}
	p, err := l.start("aimock", node, cli, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-f", file, "--latency", "5", "--journal-max", "0")
	if err != nil {
		return nil, err
	}
	m := &aimock{process: p, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	return m, l.until(func() (bool, error) {
		_, err := m.requests()
		return err == nil, nil
	})
}

// requests is the number of generation requests in the journal.
func (m *aimock) requests() (int, error) {
	res, err := http.Get(m.url + "/__aimock/journal")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return 0, err
	}
	var entries []struct {
		Method string `json:"method"`
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if e.Method == http.MethodPost {
			n++
		}
	}
	return n, nil
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}
