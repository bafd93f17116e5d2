// Package sse reads server-sent events from a response's body.
//
// It follows the format of the HTML standard (all three line endings, comments, a byte order mark, data over several
// lines), and differs from it in one place on purpose: the standard drops an event that the end of the stream cuts off,
// here that is io.ErrUnexpectedEOF. A cut answer must never look like a whole one.
//
// An event is given out at the moment its last line ends. The reader never waits for a byte that is not needed, so a
// line that ends in CR does not wait to see whether LF follows.
package sse
