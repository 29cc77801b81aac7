/** `close-connection`: ends the connection without an answer. */
import { closed, defineAction } from '../action.ts'

export const closeConnection = defineAction({
  phases: ['connect', 'request'],
  ends: true,
  guards: true,
  config: closed({}),
  compile: () => ({ run: () => ({ close: true }) }),
})
