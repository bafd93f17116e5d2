package main

// searches are complete and find nothing. Each is a mix of misfortunes and wishes; all of them together in one search
// would be too large.
var searches = []task{
	{name: "crash, cut", switches: "-DCRASH=1 -DCUT=1 -DREFOLLOW=1", small: true},
	{name: "failing provider", switches: "-DCUT=1 -DFAIL=2", small: true},
	{name: "unknown commits", switches: "-DUNKNOWN=2 -DFAIL=1", small: true},
	{name: "shutdown", switches: "-DDRAIN=1 -DCUT=1 -DDELIVER=2", small: true},
	{name: "failover", switches: "-DLOSE=1 -DCRASH=1 -DREFOLLOW=1", small: true},
	{name: "failover and regenerate", switches: "-DLOSE=1 -DREGEN=1 -DDELIVER=1", small: true},
	{name: "outage", switches: "-DOUTAGE=1 -DCRASH=1", small: true},
	{name: "sweep in two steps", switches: "-DTWOSTEP -DCUT=1 -DCRASH=1", small: true},
	{name: "later turn", switches: "-DLATER=1 -DCUT=1 -DCRASH=1", small: true},
	{name: "regenerate, select", switches: "-DCUT=1 -DREGEN=1 -DSELECT=1 -DREFOLLOW=1", small: true},

	{name: "everyday mix", switches: "-DCUT=1 -DCRASH=1 -DUNKNOWN=1 -DFAIL=1 -DSTOP=1"},
	{name: "regenerate and stop", switches: "-DCUT=1 -DCRASH=1 -DREGEN=1 -DSTOP=1"},
	{name: "enforced key", switches: "-DENFORCED -DCUT=1 -DCRASH=1 -DFAIL=1 -DSTOP=1"},
	{name: "failover and stop", switches: "-DLOSE=1 -DCUT=1 -DSTOP=1 -DCRASH=1"},
	{name: "failover and take over", switches: "-DLOSE=1 -DENFORCED -DCRASH=1 -DCUT=1"},
	{name: "shutdown with unknown commits", switches: "-DDRAIN=1 -DCUT=1 -DCRASH=1 -DSTOP=1"},
	{name: "three workers", switches: "-DW=3 -DCUT=1 -DCRASH=1 -DFAIL=1"},
	{name: "stuck", switches: "-DHANG=1 -DCUT=1 -DSTOP=1"},
	{name: "outage and cut", switches: "-DOUTAGE=1 -DCRASH=1 -DCUT=1"},
	{name: "two cuts and a sweep in two steps", switches: "-DTWOSTEP -DCUT=2 -DSTOP=1"},
}

// mutations name the switch of the rule that is taken away, the search that finds that out, and what it must find. The
// table of docs/model/README.md says which promise each is about.
var mutations = []task{
	{name: "M_BACKCANCELLED", switches: "-DCUT=1 -DSTOP=1", breaks: "asked<"},
	{name: "M_BACKLATER", switches: "-DCUT=1 -DLATER=1", breaks: "later"},
	{name: "M_BACKOLD", switches: "-DCUT=1 -DREGEN=1 -DFAIL=1", breaks: ".gen==gen"},
	{name: "M_CANCELROW", switches: "-DCUT=1 -DSTOP=1", breaks: "asked<gen"},
	{name: "M_CLAIMUNKNOWN", switches: "-DUNKNOWN=1", breaks: "moved_back"},
	{name: "M_EARLY", switches: "-DCRASH=1", breaks: ".why==7"},
	{name: "M_ENDUNKNOWN", switches: "-DUNKNOWN=1", breaks: "moved_back"},
	{name: "M_EPOCHONLY", switches: "-DLOSE=1 -DENFORCED -DCRASH=1 -DDELIVER=1", breaks: ".own==job[w].own"},
	{name: "M_FOLD", switches: "-DTWOSTEP -DCUT=2", breaks: "found_len"},
	{name: "M_GONE", switches: "-DLOSE=1", breaks: "client.at!=1"},
	{name: "M_GUARDREAD", switches: "-DCUT=1", breaks: ".own==job[w].own"},
	{name: "M_HASTY", switches: "-DOUTAGE=1", breaks: "out[i]"},
	{name: "M_INEXACT", switches: "-DCRASH=1", breaks: "client.b[0]"},
	{name: "M_NAME", switches: "-DCRASH=1", breaks: "moved_back"},
	{name: "M_NOAUDIT", switches: "-DLOSE=1", breaks: ".st!=1"},
	{name: "M_NOBURY", switches: "-DTWOSTEP -DCUT=1", breaks: "lease"},
	{name: "M_NODEADLINE", switches: "-DHANG=1", breaks: ".st!=1"},
	{name: "M_NOFENCE", switches: "-DCUT=1", breaks: ".why==1"},
	{name: "M_NOGUESS", switches: "-DCRASH=1", breaks: "sent[i]"},
	{name: "M_NOINDEX", switches: "-DCUT=1", breaks: "n<=1"},
	{name: "M_NOPERMIT", switches: "-DFAIL=1", breaks: "ledger"},
	{name: "M_NOSETTLE", switches: "-DCUT=1 -DSTOP=1", breaks: "client.log<="},
	{name: "M_NOTBACK", switches: "-DLOSE=1", breaks: "sent[i]"},
	{name: "M_NOVERSION", switches: "-DFAIL=1", breaks: "rows==0"},
	{name: "M_REGENANY", switches: "-DREGEN=1", breaks: "made<=1"},
	{name: "M_SAMEROW", switches: "-DFAIL=1", breaks: "client.b[0]"},
	{name: "M_SETTLETWICE", switches: "-DDRAIN=1 -DCUT=1 -DCRASH=1", breaks: "ledger[job[w].call]!=3"},
	{name: "M_SPOOLBLIND", switches: "-DDRAIN=1 -DCUT=1", breaks: "n<=1"},
	{name: "M_SPOOLDROP", switches: "-DDRAIN=1 -DCUT=1 -DCRASH=1", breaks: "owed==0"},
	{name: "M_TAKESTOPPED", switches: "-DENFORCED -DCRASH=1 -DSTOP=1", breaks: "asked<"},
}
