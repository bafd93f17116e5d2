package tenanttest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// The repeats of turns are left out: workers add them up when they come to it, whoever asks meanwhile.
//
// tenantTables have a column for the tenant, and keyedTables one for the conversation alone.
var (
	tenantTables = []string{"conversations", "provider_calls", "tenant_spending", "quotas", "quota_reservations", "suspensions", "api_keys"}
	keyedTables  = []string{"conversation_defaults", "turns", "reply_chunks", "reply_takeovers"}
)

// Rows are all rows of a tenant as text, each with its table's name before it, in an order of their own. Two readings are
// equal if nothing of the tenant's was changed between them.
func Rows(ctx context.Context, db *sql.DB, tenant string) (all []string, err error) {
	of := ` WHERE tenant = '` + strings.ReplaceAll(tenant, `'`, `''`) + `'`
	queries := map[string]string{}
	for _, table := range tenantTables {
		queries[table] = `SELECT * FROM ` + table + of
	}
	for _, table := range keyedTables {
		queries[table] = `SELECT * FROM ` + table + ` WHERE conversation_key IN (SELECT conversation_key FROM conversations` + of + `)`
	}
	for table, query := range queries {
		rows, err := rowsOf(ctx, db, query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
		for _, row := range rows {
			all = append(all, table+" "+row)
		}
	}
	slices.Sort(all)
	return all, nil
}

func rowsOf(ctx context.Context, db *sql.DB, query string) (lines []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%q", values))
	}
	return lines, rows.Err()
}
