package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPointsFillTheirSquare(t *testing.T) {
	require.Equal(t, [][2]float64{{0, 0.5}, {0.25, 1}, {1, 0}}, Points([]float64{2, 3, 6}, []float64{5, 10, 0}, 10))
	require.Equal(t, [][2]float64{{0, 0}}, Points([]float64{1}, []float64{0}, 0))
	require.Empty(t, Points(nil, nil, 1))
}

func TestADrawingIsXMLWithEachTitleAndPoint(t *testing.T) {
	svg := SVG("a < b & c", "min", []float64{0, 1, 2}, []Chart{{"heap, MiB", []float64{1, 2, 3}}, {"none yet", nil}})
	seen := map[string]int{}
	text := ""
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			seen[token.Name.Local]++
		case xml.CharData:
			text += string(token)
		}
	}
	require.Equal(t, 1, seen["polyline"])
	require.Equal(t, 3, seen["circle"])
	for _, want := range []string{"a < b & c", "heap, MiB", "none yet", "2 min"} {
		require.Contains(t, text, want)
	}
}
