package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Sizes of panels on Grafana's grid, which is 24 wide.
const (
	width, height             = 8, 8
	numberWidth, numberHeight = 6, 5
)

// datasource is the variable by which a reader picks his Prometheus.
var datasource = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// build makes a dashboard of a table.
func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{"turnd"}).
		Time("now-3h", "now").Refresh("30s").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("job").Label("Installation").Datasource(datasource).
			Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(turnd_in_flight, job)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
			Multi(true).IncludeAll(true).AllValue(".+").Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true), Text: dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		}))
	id, y := uint32(0), uint32(0)
	for _, r := range b.rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id).GridPos(dashboard.GridPos{X: 0, Y: y, W: 24, H: 1}))
		y++
		x, deepest := uint32(0), uint32(0)
		for _, p := range r.panels {
			id++
			w, h := p.size()
			if x+w > 24 {
				x, y, deepest = 0, y+deepest, 0
			}
			d.WithPanel(p.build(id, dashboard.GridPos{X: x, Y: y, W: w, H: h}))
			x, deepest = x+w, max(deepest, h)
		}
		y += deepest
	}
	return d.Build()
}

func (p panel) size() (w, h uint32) {
	if p.number {
		return numberWidth, numberHeight
	}
	return width, height
}

func (p panel) build(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	if p.number {
		steps := []dashboard.Threshold{{Color: "green"}, {Color: "red", Value: p.bad}}
		return stat.NewPanelBuilder().Id(id).GridPos(at).Title(p.title).Description(p.about).Unit(p.unit).Datasource(datasource).
			Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
			GraphMode(common.BigValueGraphModeArea).Targets(p.targets())
	}
	lines := timeseries.NewPanelBuilder().Id(id).GridPos(at).Title(p.title).Description(p.about).Unit(p.unit).Datasource(datasource).
		Min(0).Targets(p.targets()).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.stacked {
		lines.FillOpacity(20).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	return lines
}

func (p panel) targets() (all []cog.Builder[variants.Dataquery]) {
	for i, q := range p.queries {
		all = append(all, prometheus.NewDataqueryBuilder().Datasource(datasource).RefId(string(rune('A'+i))).
			Expr(q.expr).LegendFormat(q.legend).Range())
	}
	return all
}

// encode makes the JSON of a dashboard, and demands that Grafana's own types take it, to the last field.
func (b board) encode() ([]byte, error) {
	d, err := b.build()
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), strictly(raw)
}

// strictly reads JSON as a dashboard, and refuses fields that are unknown, missing or of another type.
func strictly(raw []byte) error {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	var d dashboard.Dashboard
	// The reader may return an error that says nothing when nothing is wrong.
	if err := d.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		return fmt.Errorf("not a dashboard of Grafana: %w", err)
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("not a dashboard of Grafana: %w", err)
	}
	if len(d.Panels) == 0 {
		return errors.New("a dashboard without panels")
	}
	return nil
}
