package scripted

// demoPaceMS makes the demo look like a model that types.
const demoPaceMS = 30

// defaultText is what a request gets that no rule matches. It is fixed: nothing of a request can appear in it.
const defaultText = "Hello! This is the scripted provider, a stand-in that comes with turnd so that you can try it without a key. " +
	"No model is running here, and every question gets this same answer. " +
	"Your turn was claimed once, this reply was produced once, and whoever sends the same turn again will be given these words. " +
	"To talk to a real model, name an endpoint in a models file."

// DefaultScript is one rule, named default, that answers every request with a few fixed sentences, one word a delta,
// paceMS milliseconds apart. Tests want 0.
func DefaultScript(paceMS int) Script {
	return Script{Rules: []Rule{{
		Name: "default",
		Plan: Plan{Blocks: []Block{{Text: defaultText}}, PaceMS: paceMS},
	}}}
}

// DemoScript is DefaultScript at a pace that people can read along with.
func DemoScript() Script { return DefaultScript(demoPaceMS) }
