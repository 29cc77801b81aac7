/** No tunnel at all: what generator and upstream can do on this machine. */
import { LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

export const direct: Contender = {
  name: 'direct',
  link: 'no tunnel',
  needs: [],
  start: async (upstreamPort) => ({ host: LOOPBACK, port: upstreamPort }),
}
