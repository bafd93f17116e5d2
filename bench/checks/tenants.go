package main

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/internal/tenanttest"
	"github.com/turnd/turnd/server"
)

// tenantsSums are the figures of tenants over all scenes.
type tenantsSums struct {
	rpcs, ids, tenants, tried, equal, statements int
	auth                                         []string // modes that all was asked in
}

// tenants asks every method of the wire about every id of several tenants, as somebody who owns none of them, on both engines;
// each answer must be the one about an id that nobody has, to the byte, and on Postgres be found by the same statements, as
// the server logged them. All of it is asked of callers who are taken at their word, and again of such as prove themselves by
// keys. A build in which two methods forget the tenant must then be found out, by those two names alone, in both ways.
func tenants(l *lab) error {
	var sums tenantsSums
	for _, auth := range []string{server.AuthNone, server.AuthKeys} {
		if err := l.tenantsBy(auth, &sums); err != nil {
			return fmt.Errorf("auth %s: %w", auth, err)
		}
		sums.auth = append(sums.auth, auth)
	}
	if err := l.plantLeaks(sums.auth); err != nil {
		return err
	}
	figure("auth", strings.Join(sums.auth, ","))
	figure("rpcs", sums.rpcs)
	figure("ids", sums.ids)
	figure("tenants", sums.tenants)
	figure("tried", sums.tried)
	figure("equal", sums.equal)
	figure("statements_equal", sums.statements)
	figure("planted", "caught")
	return nil
}

// tenantsBy asks everything on both engines, in one mode of authentication.
func (l *lab) tenantsBy(auth string, sums *tenantsSums) error {
	for _, scene := range []func() (engine, error){
		func() (engine, error) { return l.sqlite("tenants-" + auth), nil },
		func() (engine, error) { return l.logging("tenants_" + auth) },
	} {
		e, err := scene()
		if err != nil {
			return err
		}
		leaks, err := l.askAll(e, auth, sums)
		if err == nil && len(leaks) > 0 {
			err = leakError(leaks)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func leakError(leaks map[string]string) error {
	var all []error
	for _, method := range slices.Sorted(maps.Keys(leaks)) {
		all = append(all, fmt.Errorf("%s: %s", method, leaks[method]))
	}
	return errors.Join(all...)
}

// stranger asks as somebody new each time, so that no answer depends on what was asked before.
type stranger struct {
	*lab
	e      engine
	s      *service
	proofs *proofs
	log    *statementLog // nil: the engine keeps none
	houses []*house
	asked  int
	leaks  map[string]string // what was found first, by the method
	sums   *tenantsSums
}

// askAll fills an engine and asks everything in a mode of authentication. It gives what leaked, by the method that leaked it.
func (l *lab) askAll(e engine, auth string, sums *tenantsSums) (map[string]string, error) {
	p, err := l.provider(houseScript)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	models, err := l.models(p.url)
	if err != nil {
		return nil, err
	}
	// Nothing but the calls that are asked is to send statements meanwhile.
	s, err := l.serve(e, models, "--lease", "2h", "--checkpoint", "1h", "--sweep", "1h", "--grace", "100ms", "--auth", auth)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	proofs, err := l.proofs(e, auth)
	if err != nil {
		return nil, err
	}
	defer proofs.close()
	q := &stranger{lab: l, e: e, s: s, proofs: proofs, leaks: map[string]string{}, sums: sums}
	count := 3
	if l.short {
		count = 2
	}
	for i := range count {
		tenant := fmt.Sprintf("house %d", i+1)
		ctx, err := proofs.owner(tenant)
		if err != nil {
			return nil, err
		}
		h, err := newHouse(ctx, s, p, tenant, i+1)
		if err != nil {
			return nil, err
		}
		q.houses = append(q.houses, h)
	}
	if e.log != "" {
		if q.log, err = l.listen(e); err != nil {
			return nil, err
		}
		defer q.log.close()
	}
	return q.leaks, q.askOf()
}

// shortStates are asked about where there is little time.
var shortStates = []string{"complete", "held", "in flight", "deleted turn"}

// askOf asks of all houses, and sees that nothing of theirs was changed by it.
func (q *stranger) askOf() error {
	db, err := sql.Open(q.e.driver, q.e.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	methods, err := tenanttest.Methods()
	if err != nil {
		return err
	}
	q.sums.rpcs, q.sums.tenants, q.sums.ids = len(methods), len(q.houses), 0
	for _, h := range q.houses {
		before, err := tenanttest.Rows(q.ctx, db, h.tenant)
		if err != nil {
			return err
		}
		for _, state := range slices.Sorted(maps.Keys(h.have)) {
			if q.short && !slices.Contains(shortStates, state) {
				continue
			}
			q.sums.ids++
			for _, m := range methods {
				if err := q.compareAll(m, h.have[state], state); err != nil {
					return fmt.Errorf("%s about what is %s: %w", m, state, err)
				}
			}
		}
		after, err := tenanttest.Rows(q.ctx, db, h.tenant)
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			q.leaks["rows"] = "what " + h.tenant + " has was changed by strangers"
		}
	}
	return nil
}

func (q *stranger) compareAll(m tenanttest.Method, theirs tenanttest.IDs, state string) error {
	missing, err := theirs.Missing()
	if err != nil {
		return err
	}
	for i := range m.Requests(theirs) {
		q.sums.tried++
		leak := ""
		for range 3 { // a statement of another call's may come between
			if leak, err = q.compare(m, i, theirs, missing); err != nil {
				return err
			}
			if leak == "" || leak != otherStatements {
				break
			}
		}
		switch {
		case leak == "":
			q.sums.equal++
		case q.leaks[m.String()] == "":
			q.leaks[m.String()] = fmt.Sprintf("%s (question %d, about what is %s)", leak, i+1, state)
		}
	}
	return nil
}

const otherStatements = "its statements are others than for an id that nobody has"

// compare asks one question about ids and about missing ones, and says what tells the two apart.
func (q *stranger) compare(m tenanttest.Method, i int, theirs, missing tenanttest.IDs) (leak string, err error) {
	none, noneBy, err := q.ask(m, m.Requests(missing)[i], missing)
	if err != nil {
		return "", err
	}
	foreign, foreignBy, err := q.ask(m, m.Requests(theirs)[i], theirs)
	if err != nil {
		return "", err
	}
	var all []tenanttest.IDs
	for _, h := range q.houses {
		all = append(all, slices.Collect(maps.Values(h.have))...)
	}
	switch {
	case foreign.Status.Code() == codes.Internal || foreign.Status.Code() == codes.Unavailable:
		return "", foreign.Status.Err()
	case none.Text(missing) != foreign.Text(missing):
		return "its answer is another than for an id that nobody has", nil
	case strings.Contains(foreign.Text(theirs), houseSecret), len(foreign.Others(all)) > 0:
		return "its answer names what was not asked about", nil
	case q.log == nil || q.makes(m, foreign):
		return "", nil
	case len(foreignBy) == 0:
		return "", fmt.Errorf("the server logged no statement for %v", foreign.Status)
	case q.proofs.keys != nil && !slices.ContainsFunc(foreignBy, isOfKeys):
		return "", fmt.Errorf("the server let a key in that it did not look for: %v", foreign.Status)
	case !slices.Equal(noneBy, foreignBy):
		return otherStatements, nil
	}
	q.sums.statements++
	return "", nil
}

// isOfKeys reports a statement that finds a key.
func isOfKeys(statement string) bool { return strings.Contains(statement, "FROM api_keys") }

// makes reports a call that made a turn of the stranger's own. Its reply is made beside the call, so the statements of both mix.
func (q *stranger) makes(m tenanttest.Method, a tenanttest.Answer) bool {
	return a.Status.Code() == codes.OK && (m.String() == "TurnService.Turn" || m.String() == "TurnService.SubmitTurn")
}

// ask puts a question as somebody new, and gives the answer with the statements that the database was sent meanwhile.
func (q *stranger) ask(m tenanttest.Method, request proto.Message, ids tenanttest.IDs) (a tenanttest.Answer, statements []string, err error) {
	q.asked++
	ctx, err := q.proofs.caller(fmt.Sprintf("stranger %d", q.asked))
	if err != nil {
		return a, nil, err
	}
	if a, err = tenanttest.Ask(ctx, q.s.conn, m, request, ids); err != nil {
		return a, nil, err
	}
	if q.makes(m, a) {
		if err := q.quiet(); err != nil {
			return a, nil, err
		}
	}
	if q.log != nil {
		statements, err = q.log.next()
	}
	return a, statements, err
}

// quiet waits until nothing runs but what the houses have running.
func (q *stranger) quiet() error {
	return q.until(func() (bool, error) {
		n, err := q.e.number(q.ctx, inFlight)
		return n <= len(q.houses), err
	})
}
