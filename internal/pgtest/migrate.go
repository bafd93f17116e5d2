package pgtest

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx"

	"github.com/turnd/turnd/migrations"
)

// Migrate brings a database to the newest schema. It is what Migrated is given where nothing else is wanted.
func Migrate(dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	set, err := migrations.Postgres(db)
	if err == nil {
		_, err = set.Up(context.Background())
	}
	return errors.Join(err, db.Close())
}
