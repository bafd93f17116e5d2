/* The reply protocol of one user turn: a few workers, one database, a provider, a client that follows.

   Read in this order: this file (what is counted and bounded), rows.pml (the database: each inline there is one
   transaction and bears the name of its verb), worker.pml (what a worker does and when), world.pml (what befalls it, what
   the client sees, and what must be true in the end).

   Every budget below is spent and never refilled, so each run ends, and what must happen in the end is asserted where
   nothing more can happen. A switch M_.. takes one rule away: the checker must then find the promise that breaks. */

/* Sizes: workers, replies, provider calls, process lives, epochs of a reply, bytes of a log. */
#ifndef W
#define W 2
#endif
#ifndef R
#define R 3
#endif
#ifndef C
#define C 6
#endif
#define LIVES 9
#ifndef MAXEP
#define MAXEP 3
#endif
#define L 2

/* How often the turn is sent; how often each misfortune strikes; how often people ask for something. */
#ifndef DELIVER
#define DELIVER 2
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef OUTAGE
#define OUTAGE 0
#endif
#ifndef UNKNOWN
#define UNKNOWN 0
#endif
#ifndef FAIL
#define FAIL 0
#endif
#ifndef HANG
#define HANG 0
#endif
#ifndef DRAIN
#define DRAIN 0
#endif
#ifndef LOSE
#define LOSE 0
#endif
#ifndef STOP
#define STOP 0
#endif
#ifndef REGEN
#define REGEN 0
#endif
#ifndef SELECT
#define SELECT 0
#endif
#ifndef REFOLLOW
#define REFOLLOW 0
#endif
#ifndef LATER
#define LATER 0
#endif

/* ENFORCED: the provider answers a repeated key with the bytes it gave the first time.
   TWOSTEP: a sweep reads the row in one transaction and writes in another, as it does; without it both are one step,
   which costs fewer states and leaves out only what happens in between. */

#include "rows.pml"
#include "world.pml"
#include "worker.pml"

init {
  d_step {
    me[0] = 1; lease[1] = ALIVE; me[1] = 2; lease[2] = ALIVE; lives = 2;
#if W>2
    me[2] = 3; lease[3] = ALIVE; lives = 3;
#endif
#if OUTAGE>0
    steady[0] = 1; steady[1] = 1;
#endif
  }
  atomic {
    run Worker(0); run Worker(1);
#if W>2
    run Worker(2);
#endif
    run World(); run Follower(); run Quiet()
  }
}
