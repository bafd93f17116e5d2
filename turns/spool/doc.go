// Package spool keeps endings of replies in files, for as long as the database does not take them.
//
// An ending has one file, <conversation key>/<reply id>-<epoch>.json below the directory: an envelope with the name and
// version of the format and the SHA-256 of the body, and the body. A file is there whole or not at all, and is on the disk
// once Keep has returned. It is readable by its owner alone, since replies are in it.
//
// What can't be read is never deleted. It is renamed to <name>.bad and said once, with the reason and never with content,
// and keeps no other file from being read. Age is no reason to drop one either: whether a reply still wants its ending is
// for the database to say.
//
// Several processes may share a directory. Each may read and drop what another one kept: a file is dropped only once its
// ending is stored or settled, which is the same whoever did it.
package spool
