/** The `response_headers` module: headers removed from and added to a response before it goes to the visitor. */

import { isEdgeHeader } from '../../model/header-rules.ts'
import { checkHeaderForm, headerForm, headerFormPrice, headerSettings } from '../headers/header-form.ts'
import { defineModule } from '../module.ts'

export const responseHeaders = defineModule({
  name: 'response_headers',
  about: 'Removes headers from a response and adds others before it goes to the visitor.',
  at: { route: headerForm({ adding: 'A header that is there already gets one more value.' }) },
  needs: () => 'http',
  accept: (config, { at }) => {
    checkHeaderForm(config, at, (name) =>
      // visitors can trust `postern-error-code`.
      isEdgeHeader(name) ? 'begins with `postern-`, which is reserved for headers of the edge' : undefined,
    )
    return config
  },
  price: headerFormPrice,
  resolve: headerSettings,
})
