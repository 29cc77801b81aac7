/** The `request_headers` module: headers removed from and added to a request before it goes upstream. */
import { headerModule } from '../headers/header-form.ts'

export const requestHeaders = headerModule({
  name: 'request_headers',
  about: 'Removes headers from a request and adds others before it goes upstream.',
  adding: 'A header that is there already gets one more value; `host` is replaced.',
  kept: (name, added, at) =>
    name === 'host' && !added.has(name)
      ? `removes \`host\`, which every request needs; put a new value into \`${at}add\` too`
      : undefined,
})
