/* text - makes text from other people harmless to show: base/text.h, which the daemon needs as
 * well */
#ifndef SL_CLI_LINE_TEXT_H
#define SL_CLI_LINE_TEXT_H

#include "base/text.h"

#endif
