/** `log`: writes a log line with values that a rule chooses, besides the line of the request or connection. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction } from '../action.ts'
import { compileDocument } from '../document-template.ts'
import { closedObject } from '../phase-settings.ts'

/** The most characters that the rules of one request may log in total. */
const MAX_LENGTH = 16 * 1024

export const LOGS = 'traffic_policy.logs'

export const log = defineAction({
  phases: ['connect', 'request', 'response'],
  sources: { metadata: 'template' },
  config: closedObject({
    metadata: Type.Record(Type.String(), Type.Unknown(), {
      maxProperties: 50,
      maxKeyBytes: 255,
      description: 'What is written to the log, by name.',
    }),
  }),
  compile: ({ metadata }, { template, evaluator, tools }) => {
    const document = compileDocument(metadata, template, (value) => evaluator.plain(value))
    return {
      run(moment) {
        const { connection, request } = moment
        const filled = document(moment)
        if (!request) {
          tools.log.info({ edge: connection.edgeId, peer: connection.peer.ip, metadata: filled }, 'policy log')
          return undefined
        }
        const before = request.found.get(LOGS)
        const text = JSON.stringify(filled)
        const all = before === undefined ? `[${text}]` : `${before.slice(0, -1)},${text}]`
        if (all.length <= MAX_LENGTH) request.found.set(LOGS, all)
        return undefined
      },
    }
  },
})
