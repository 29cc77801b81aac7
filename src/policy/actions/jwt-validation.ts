/** `jwt-validation`: lets in requests that bring tokens of an issuer that is trusted. */
import { defineAction } from '../action.ts'
import { checkJwt, jwtForm } from '../jwt-validation.ts'

export const jwtValidation = defineAction({
  phases: ['request'],
  guards: true,
  config: jwtForm,
  refine: checkJwt,
  compile: () => {
    throw new Error('jwt-validation is not enforced yet')
  },
})
