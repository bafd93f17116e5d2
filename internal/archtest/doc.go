// Package archtest holds the rules of the house: which package may import which, and what every file owes its reader.
//
// The rules are a table, each with one sentence that says what to do instead. They are checked over the tree as it lies
// on disk by the tests of this package, and over made-up trees that break them one by one, so that a rule that has
// stopped working is noticed as well. Files that tools generate and sources of third parties are left out.
//
// Imports of _test files are free, except that nothing may import a command.
package archtest
