*** Settings ***
Documentation     The console on the UART. Skipped for a firmware that has none.
Resource          trebuchet.resource
Resource          console.resource
Test Setup        Board With Console
Test Teardown     Test Teardown

*** Test Cases ***
Lists Its Commands
    Ask    help
    Wait For Line On Uart    peek ADDRESS    treatAsRegex=false
    Wait For Line On Uart    reset .*restart    treatAsRegex=true

Reads The Same Register As The Monitor
    Write Word    ctrl    4    0xCAFE1234
    Ask    peek ${SCRATCH}
    Wait For Line On Uart    : cafe1234    treatAsRegex=false

Corrects What Is Typed
    Type    upti
    Type    x\x08
    Type    me\r
    Wait For Line On Uart    started by power    treatAsRegex=false

Repeats A Line Of The History
    Ask    version
    Wait For Line On Uart    Trebuchet .* on .*Hz    treatAsRegex=true
    Type    \x1b[A\r
    Wait For Line On Uart    Trebuchet .* on .*Hz    treatAsRegex=true

Says What Is No Command
    Ask    trebuchet
    Wait For Line On Uart    UNKNOWN_COMMAND    treatAsRegex=false

Restarts On Command
    Ask    reset
    Wait For Line On Uart    start: command
    Wait For Line On Uart    ready
