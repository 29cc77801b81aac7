/** No tunnel at all: the speed of generator and upstream on this machine. */
import { LOOPBACK } from '../../stage/ports.ts'
import type { Contender } from './contender.ts'

export const direct: Contender = {
  name: 'direct',
  link: 'no tunnel',
  needs: [],
  start: async (upstreamPort) => ({ host: LOOPBACK, port: upstreamPort }),
}
