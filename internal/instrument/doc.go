// Package instrument names what turnd measures: each metric with its unit, its meaning and its labels, the words of the
// GenAI conventions, and the spans. What measures takes its instruments from here by name, so that docs/metrics.md, which is
// generated from Catalog, and what a scraper reads can't disagree.
//
// Names, units and labels are a contract: dashboards and alerts are written against them. No label holds an id, a tenant, a
// subject or a text; each comes from a closed list, or from the models file by Bounded.
package instrument
