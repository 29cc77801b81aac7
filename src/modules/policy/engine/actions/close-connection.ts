/** `close-connection`: ends the connection without an answer. */
import { defineAction } from '../action.ts'
import { closedObject } from '../phase-settings.ts'

export const closeConnection = defineAction({
  phases: ['connect', 'request'],
  ends: true,
  guards: true,
  config: closedObject({}),
  compile: () => ({ run: () => ({ close: true }) }),
})
