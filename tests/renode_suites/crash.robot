*** Settings ***
Documentation     Crash dump and watchdog. Skipped for a firmware that has no watchdog.
Resource          trebuchet.resource
Resource          console.resource
Test Setup        Board With Console
Test Teardown     Test Teardown

*** Test Cases ***
The Watchdog Says Where The Firmware Hung
    Ask    crash hang
    Wait For Line On Uart    crash: watchdog: the firmware hung    treatAsRegex=false
    Wait For Line On Uart    start: watchdog
    Wait For Line On Uart    ready
    Wait For Prompt On Uart    ${PROMPT}
    Ask    crash
    Wait For Line On Uart    crash: watchdog: the firmware hung    treatAsRegex=false

A Crash Is Kept Over The Restart
    Ask    crash now
    Wait For Line On Uart    start: crash
    Wait For Line On Uart    ready
    Wait For Prompt On Uart    ${PROMPT}
    Ask    crash
    Wait For Line On Uart    pc +[0-9a-f]+    treatAsRegex=true
