package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// parsed reads expressions.
var parsed = parser.NewParser(parser.Options{})

// labelsOf demands that an expression names metrics and labels that there are, and returns the labels of what it gives.
func (v vocabulary) labelsOf(expr string) ([]string, error) {
	e, err := parsed.ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	return v.of(e)
}

// of is labelsOf for a part of an expression.
func (v vocabulary) of(e parser.Expr) ([]string, error) {
	switch e := e.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil, nil
	case *parser.ParenExpr:
		return v.of(e.Expr)
	case *parser.UnaryExpr:
		return v.of(e.Expr)
	case *parser.StepInvariantExpr:
		return v.of(e.Expr)
	case *parser.SubqueryExpr:
		return v.of(e.Expr)
	case *parser.MatrixSelector:
		return v.of(e.VectorSelector)
	case *parser.VectorSelector:
		return v.selected(e)
	case *parser.AggregateExpr:
		return v.aggregated(e)
	case *parser.BinaryExpr:
		return v.combined(e)
	case *parser.Call:
		return v.called(e)
	}
	return nil, fmt.Errorf("%s: what is a %T?", e, e)
}

func (v vocabulary) selected(e *parser.VectorSelector) ([]string, error) {
	s, ok := v[e.Name]
	if !ok {
		return nil, fmt.Errorf("there is no metric %s", e.Name)
	}
	have := append(slices.Clone(target), s.labels...)
	for _, m := range e.LabelMatchers {
		if m.Name == "__name__" {
			continue
		}
		if !slices.Contains(have, m.Name) {
			return nil, fmt.Errorf("%s has no label %s", e.Name, m.Name)
		}
		if err := s.hasValues(m); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return have, nil
}

// hasValues demands that the catalog mentions what a matcher looks for.
func (s series) hasValues(m *labels.Matcher) error {
	words := s.values[m.Name]
	if words == nil || m.Value == "" {
		return nil
	}
	asked := []string{m.Value}
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		asked = strings.Split(m.Value, "|")
	}
	for _, value := range asked {
		if !slices.Contains(words, value) {
			return fmt.Errorf("the catalog knows no %s %q", m.Name, value)
		}
	}
	return nil
}

func (v vocabulary) aggregated(e *parser.AggregateExpr) ([]string, error) {
	have, err := v.of(e.Expr)
	if err != nil {
		return nil, err
	}
	if missing := without(e.Grouping, have); len(missing) > 0 {
		return nil, fmt.Errorf("%s has no label %s", e.Expr, strings.Join(missing, ", "))
	}
	if e.Without {
		return without(have, e.Grouping), nil
	}
	return e.Grouping, nil
}

func (v vocabulary) combined(e *parser.BinaryExpr) ([]string, error) {
	left, err := v.of(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := v.of(e.RHS)
	if err != nil {
		return nil, err
	}
	if e.LHS.Type() == parser.ValueTypeScalar {
		return right, nil
	}
	if e.RHS.Type() == parser.ValueTypeScalar {
		return left, nil
	}
	m := e.VectorMatching
	if missing := append(without(m.MatchingLabels, left), without(m.MatchingLabels, right)...); len(missing) > 0 {
		return nil, fmt.Errorf("%s matches by %s, which a side of it does not have", e, strings.Join(missing, ", "))
	}
	if !m.On && len(m.MatchingLabels) == 0 && len(without(left, right))+len(without(right, left)) > 0 {
		return nil, fmt.Errorf("%s never matches: one side has the labels %v, the other %v", e, left, right)
	}
	if m.Card == parser.CardOneToMany {
		return right, nil
	}
	return left, nil
}

// called is of for a function.
func (v vocabulary) called(e *parser.Call) ([]string, error) {
	var have []string
	for i, arg := range e.Args {
		got, err := v.of(arg)
		if err != nil {
			return nil, err
		}
		if i == 0 || len(got) > 0 {
			have = got
		}
	}
	switch e.Func.Name {
	case "vector", "absent", "absent_over_time":
		// What stands in for a missing value hides that it is missing.
		return nil, fmt.Errorf("%s makes a value of nothing", e.Func.Name)
	case "histogram_quantile":
		if !slices.Contains(have, labels.BucketLabel) {
			return nil, errors.New("a quantile needs the label le")
		}
		return without(have, []string{labels.BucketLabel}), nil
	case "label_replace", "label_join":
		return nil, fmt.Errorf("%s is not known here", e.Func.Name)
	}
	return have, nil
}

// without are the words that are not among others.
func without(words, others []string) (rest []string) {
	for _, w := range words {
		if !slices.Contains(others, w) {
			rest = append(rest, w)
		}
	}
	return rest
}
