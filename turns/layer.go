package turns

// Layer is who made a call that repeats work: what a person who pays for it has to look at. The zero value is not known.
type Layer string

// The layers. A call is the first one of its user turn and generation; or it is made since a client or what delivers to it
// sent the turn again after an attempt had failed, since another worker took the reply over, or by turnd's own answer to a
// failure of the provider.
const (
	LayerFirst      Layer = "first"
	LayerClient     Layer = "client"
	LayerRedelivery Layer = "redelivery"
	LayerTakeover   Layer = "takeover"
	LayerProvider   Layer = "provider"
)

// Layers are all layers, in the order in which they are shown.
func Layers() []Layer {
	return []Layer{LayerFirst, LayerClient, LayerRedelivery, LayerTakeover, LayerProvider}
}

// MadeBy is the call's layer. A call that says none, as one of an older spool or archive does, was the first one or made
// again by the provider's failure.
func (c NewCall) MadeBy() Layer { return madeBy(c.Layer, c.First) }

// MadeBy is the call's layer; of an older archive's call, as NewCall has it.
func (c *ArchivedCall) MadeBy() Layer { return madeBy(c.Layer, c.First) }

func madeBy(said Layer, first bool) Layer {
	switch {
	case first:
		return LayerFirst
	case said == "" || said == LayerFirst:
		return LayerProvider
	}
	return said
}

// layer is the layer that a repeated delivery is counted under; a client's where nothing is known.
func (d Delivery) layer() Layer {
	if d.Source == SourceRedelivery {
		return LayerRedelivery
	}
	return LayerClient
}
