package server

import (
	"container/list"
	"net"
	"sync"
)

// waiting are the connections that have not shown yet what they speak. They cost a client nothing, so there are never
// more than some: one more and the longest waiting is closed. Who means to speak does so within a round trip or two, and
// has long been handed on when others have filled the line behind it.
type waiting struct {
	most int

	mu    sync.Mutex
	order list.List // of net.Conn, the longest waiting first
}

// join puts a connection in line. leave takes it out, and is false if it was closed meanwhile.
func (w *waiting) join(conn net.Conn) (leave func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.order.Len() >= w.most {
		_ = w.order.Remove(w.order.Front()).(net.Conn).Close()
	}
	place := w.order.PushBack(conn)
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		before := w.order.Len()
		w.order.Remove(place)
		return w.order.Len() < before
	}
}
