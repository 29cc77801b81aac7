/** The text of a refusal, as an answer to an agent carries it. */
import { errorText } from '../../link/wire/messages/error-text.ts'
import type { BindRefusal } from '../../model/endpoint.ts'

export function refusalText({ message, ngrok }: BindRefusal): string {
  return errorText(message, `ERR_NGROK_${ngrok}`)
}
