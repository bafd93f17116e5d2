package postgres

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowsOf are the rows of a statement, read into structs of a type.
type rowsOf struct {
	sql string
	row reflect.Type
}

// columnFields are the fields that the columns of rowsOf go to, in their order, as [][]int. Statements are constants, so it has a
// bound.
var columnFields sync.Map

// byName reads a statement's rows into structs by the names of its columns, as pgx.RowToStructByName does, which joins and looks up
// all names for every row. It serves one use of the statement.
func byName[T any](sql string) pgx.RowToFunc[T] {
	var fields [][]int
	var targets []any
	return func(row pgx.CollectableRow) (T, error) {
		var value T
		to := reflect.ValueOf(&value).Elem()
		if fields == nil {
			var err error
			if fields, err = fieldsOf(rowsOf{sql, to.Type()}, row.FieldDescriptions()); err != nil {
				return value, err
			}
			targets = make([]any, len(fields))
		}
		for i, field := range fields {
			targets[i] = to.FieldByIndex(field).Addr().Interface()
		}
		return value, row.Scan(targets...)
	}
}

func fieldsOf(rows rowsOf, columns []pgconn.FieldDescription) ([][]int, error) {
	if known, ok := columnFields.Load(rows); ok {
		return known.([][]int), nil
	}
	named := map[string][]int{}
	for _, f := range reflect.VisibleFields(rows.row) {
		if !f.Anonymous {
			named[strings.ToLower(f.Name)] = f.Index
		}
	}
	fields := make([][]int, len(columns))
	for i, c := range columns {
		name := strings.ReplaceAll(c.Name, "_", "")
		if fields[i] = named[name]; fields[i] == nil {
			return nil, fmt.Errorf("no field for column %s", c.Name)
		}
		delete(named, name)
	}
	if len(named) > 0 {
		return nil, fmt.Errorf("%d fields without a column", len(named))
	}
	columnFields.Store(rows, fields)
	return fields, nil
}
