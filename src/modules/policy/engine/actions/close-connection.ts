/** `close-connection`: ends the connection without an answer. */
import { closedObject, defineAction } from '../action.ts'

export const closeConnection = defineAction({
  phases: ['connect', 'request'],
  ends: true,
  guards: true,
  config: closedObject({}),
  compile: () => ({ run: () => ({ close: true }) }),
})
