/** `deny`: refuses the request with a bare status, or closes the connection. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction } from '../action.ts'
import { badSetting, closedObject } from '../phase-settings.ts'

export const deny = defineAction({
  phases: ['connect', 'request'],
  ends: true,
  guards: true,
  config: closedObject({
    status_code: Type.Integer({ default: 403, description: 'Status of the response: 400 to 599, or 999.' }),
  }),
  refine: ({ status_code }, at) => {
    // 999 was the default until mid 2024.
    if ((status_code < 400 || status_code > 599) && status_code !== 999) {
      throw badSetting(`${at}.status_code`, 'must be between 400 and 599, or 999')
    }
  },
  compile: ({ status_code }, { site }) => ({
    run(moment) {
      if (site.phase === 'connect') return { close: true }
      moment.isDenied = true
      return { respond: { status: status_code, headers: [], body: '' } }
    },
  }),
})
