/** The rows of the suite that plain `ssh` does not support, by a part of their titles, and why. */
export const notOverSsh: readonly (readonly [row: string, why: string])[] = [
  // Its client connects to the service in plain TCP.
  ['encrypted again for a service that wants TLS', 'ssh cannot speak TLS to a service'],
  ['a service with TLS of its own', 'ssh cannot speak TLS to a service'],
  ['PROXY protocol comes before the TLS of a service', 'ssh cannot speak TLS to a service'],

  // It authenticates with keys; test/interop/ssh/refusals.test.ts covers unknown and wrong ones.
  ['with an invalid authtoken', 'ssh has keys in place of authtokens'],
  ['with an unknown authtoken', 'ssh has keys in place of authtokens'],
  ['with an API key', 'ssh has keys in place of authtokens'],

  // An SSH session consists of its one command: it has no metadata, and ends with the command.
  [
    'with more metadata than is kept',
    'a session over SSH has no metadata; that of a tunnel is bounded in data-plane/tunnel/bind-tunnel.test.ts',
  ],
  ['reaches the agent it is for, and no other', 'no program behind ssh takes commands; see the row of stop'],
  ['in the words of an agent that does not support it', 'no program behind ssh takes commands; see the row of stop'],
  ['a command to a session that is over is a 404', 'no program behind ssh takes commands; see the row of stop'],
]
