// Package deploy holds no code: its tests keep the files beside it true to the schema, to the settings of the command and
// to the form that their programs demand. What each file is for stands in README.md.
package deploy
