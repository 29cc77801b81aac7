/** The rows of the suite that plain `ssh` cannot have, by a part of their titles, and why. All others run for it too. */
export const notOverSsh: readonly (readonly [row: string, why: string])[] = [
  // Its client connects to the service in plain TCP.
  ['encrypted again for a service that wants TLS', 'ssh cannot speak TLS to a service'],
  ['a service with TLS of its own', 'ssh cannot speak TLS to a service'],
  ['PROXY protocol comes before the TLS of a service', 'ssh cannot speak TLS to a service'],

  // It proves itself with keys; what unknown and wrong ones are told is in test/interop/ssh/refusals.test.ts.
  ['with what is no authtoken', 'ssh has keys in place of authtokens'],
  ['with an authtoken that nobody has', 'ssh has keys in place of authtokens'],
  ['with an API key', 'ssh has keys in place of authtokens'],

  // A session has nothing of its own: it begins with its one command and ends with it.
  [
    'with more metadata than is kept',
    'a session over SSH has no metadata; that of a tunnel is bounded in tunnel/bind.test.ts',
  ],
  ['reaches the agent it is for, and no other', 'no program behind ssh takes commands; see the row of stop'],
  ['in the words of an agent that does not support it', 'no program behind ssh takes commands; see the row of stop'],
  ['a command to a session that is over is a 404', 'no program behind ssh takes commands; see the row of stop'],
]
