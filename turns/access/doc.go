// Package access says who may call: API keys and their scopes, and subjects that are suspended. It holds the words and the
// port to where they are kept; proof of identity is the server's.
package access
