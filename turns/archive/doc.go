// Package archive writes conversations into a file and reads them back: JSON lines, one a record, in an order in which a
// reader can store them line by line. docs/archive.md describes the format.
//
// A file holds everything that is stored of a conversation, the sealed reasoning included that only its vendor can read, so
// it is as secret as the database. Two copies of the same database are the same to the byte, whatever its engine.
package archive
