/** The `response_headers` module: headers removed from and added to a response before it goes to the visitor. */

import { isEdgeHeader } from '../../model/header-rules.ts'
import { headerModule } from '../headers/header-form.ts'

export const responseHeaders = headerModule({
  name: 'response_headers',
  about: 'Removes headers from a response and adds others before it goes to the visitor.',
  adding: 'A header that is there already gets one more value.',
  kept: (name) =>
    // visitors can trust `postern-error-code`.
    isEdgeHeader(name) ? 'begins with `postern-`, which is reserved for headers of the edge' : undefined,
})
