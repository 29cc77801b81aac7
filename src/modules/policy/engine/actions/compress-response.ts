/** `compress-response`: sends the response compressed when the visitor accepts it. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction } from '../action.ts'
import { closedObject } from '../phase-settings.ts'

export const compressResponse = defineAction({
  phases: ['request', 'response'],
  config: closedObject({
    algorithms: Type.Array(Type.Enum(['gzip', 'br', 'deflate', 'compress']), {
      default: ['gzip', 'br', 'deflate'],
      minItems: 1,
      maxItems: 4,
      description: 'Compressions that may be used when the visitor accepts them.',
    }),
  }),
  compile: ({ algorithms }, { site, tools }) => {
    const { response } = tools.guards.compression({ algorithms })
    if (site.phase === 'request') {
      // Runs before there is a response; the response is compressed when it comes.
      return {
        run: () => undefined,
        response: (incoming, request) => void response?.(incoming as never, request as never),
      }
    }
    return {
      run(moment) {
        // An edge passes its own request and response here, as the module expects.
        response?.(moment.response as never, moment.request as never)
        return undefined
      },
    }
  },
})
