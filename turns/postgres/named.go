package postgres

import (
	"context"
	"regexp"
	"sync"

	"github.com/jackc/pgx/v5"
)

// named are the arguments of a statement of this package by their names, as pgx.NamedArgs are, for a statement whose text was
// read once and for all.
type named pgx.NamedArgs

// numberedStatement is a statement as the server takes it, and the names of its parameters in the order of their numbers.
type numberedStatement struct {
	sql   string
	names []string
}

// numberedStatements are by the text with names. The texts are constants, so it has a bound.
var numberedStatements sync.Map

// RewriteQuery implements pgx.QueryRewriter.
func (a named) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, _ []any) (string, []any, error) {
	known, ok := numberedStatements.Load(sql)
	if !ok {
		statement, err := number(ctx, conn, sql)
		if err != nil {
			return "", nil, err
		}
		known, _ = numberedStatements.LoadOrStore(sql, statement)
	}
	statement := known.(numberedStatement)
	args := make([]any, len(statement.names))
	for i, name := range statement.names {
		args[i] = a[name]
	}
	return statement.sql, args, nil
}

var mayBeParameter = regexp.MustCompile(`@(\w+)`)

// number has pgx read the statement, with each parameter's name as what is passed for it.
func number(ctx context.Context, conn *pgx.Conn, sql string) (numberedStatement, error) {
	names := pgx.NamedArgs{}
	for _, match := range mayBeParameter.FindAllStringSubmatch(sql, -1) {
		names[match[1]] = match[1]
	}
	text, ordered, err := names.RewriteQuery(ctx, conn, sql, nil)
	if err != nil {
		return numberedStatement{}, err
	}
	statement := numberedStatement{sql: text, names: make([]string, len(ordered))}
	for i := range ordered {
		statement.names[i] = ordered[i].(string)
	}
	return statement, nil
}
