/** Stream types: the number that the opener of a stream sends first. */

export const streamTypes = {
  auth: 0,
  bind: 1,
  unbind: 2,
  proxy: 3,
  restart: 4,
  stop: 5,
  update: 6,
  startTunnelWithLabel: 7,
  serverInfo: 8,
  stopTunnel: 9,
  patchTunnel: 10,
  /** Our own, `move` in ASCII: only for agents that announce it. */
  move: 0x6d6f7665,
  /** Our own, `node` in ASCII: sends the other nodes to agents that announce it. */
  nodes: 0x6e6f6465,
  /** Our own, `begi` in ASCII: a standby becomes its session. */
  begin: 0x62656769,
  heartbeat: 0xffffffff,
} as const

export type StreamType = (typeof streamTypes)[keyof typeof streamTypes]

export const TYPE_BYTES = 4

/** The head of a stream of this type, which is one of `streamTypes` or the caller's own. */
export function typeHead(type: number): Buffer {
  const head = Buffer.alloc(TYPE_BYTES)
  head.writeUInt32BE(type)
  return head
}
