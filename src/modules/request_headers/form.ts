/** The `request_headers` module: headers removed from and added to a request before it goes upstream. */
import { checkHeaderForm, headerForm, headerFormPrice, headerSettings } from '../headers/header-form.ts'
import { defineModule } from '../module.ts'

export const requestHeaders = defineModule({
  name: 'request_headers',
  about: 'Removes headers from a request and adds others before it goes upstream.',
  at: { route: headerForm({ adding: 'A header that is there already gets one more value; `host` is replaced.' }) },
  needs: () => 'http',
  accept: (config, { at }) => {
    checkHeaderForm(config, at, (name, added) =>
      name === 'host' && !added.has(name)
        ? `removes \`host\`, which every request needs; put a new value into \`${at}add\` too`
        : undefined,
    )
    return config
  },
  price: headerFormPrice,
  resolve: headerSettings,
})
